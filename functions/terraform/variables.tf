# Parameters of ../../template.yaml, with its defaults and its limits; a test compares them.

variable "name" {
  type        = string
  default     = "coldframe"
  description = "Beginning of the resources' names; several stacks can live side by side in one account"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}$", var.name))
    error_message = "name must begin with a letter and have 2 to 31 small letters, digits and hyphens."
  }
}

variable "image_uri" {
  type        = string
  description = "Image of the predict function in the registry of this account (ECR), built for var.architecture"
}

variable "cold_start_mode" {
  type        = string
  default     = "OnDemand"
  description = "OnDemand - an environment starts with the first request that needs it; Provisioned - a number of environments stays initialized and is paid for; SnapStart - environments start from a snapshot of an initialized one"

  validation {
    condition     = contains(["OnDemand", "Provisioned", "SnapStart"], var.cold_start_mode)
    error_message = "cold_start_mode must be one of OnDemand, Provisioned, SnapStart."
  }
}

variable "provisioned_concurrency_min" {
  type        = number
  default     = 1
  description = "Environments that are always initialized; only in mode Provisioned"

  validation {
    condition     = var.provisioned_concurrency_min >= 1
    error_message = "provisioned_concurrency_min must be 1 or more."
  }
}

variable "provisioned_concurrency_max" {
  type        = number
  default     = 4
  description = "Largest number of environments that scaling may initialize; only in mode Provisioned"

  validation {
    condition     = var.provisioned_concurrency_max >= 1
    error_message = "provisioned_concurrency_max must be 1 or more."
  }

  validation {
    condition     = var.provisioned_concurrency_max >= var.provisioned_concurrency_min
    error_message = "provisioned_concurrency_max must not be less than provisioned_concurrency_min."
  }
}

variable "models" {
  type        = string
  default     = ""
  description = "Models of the image to serve, separated by commas; the first one answers requests that name no model; empty - all models, with the default that `coldframe models --default` recorded"

  validation {
    condition     = can(regex("^([a-z0-9._-]+(,[a-z0-9._-]+)*)?$", var.models))
    error_message = "models must be names of models, separated by commas."
  }

  validation {
    condition     = length(var.models) <= 120
    error_message = "models must have at most 120 characters."
  }
}

variable "architecture" {
  type        = string
  default     = "arm64"
  description = "Instruction set; the image must be built for the same one"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture must be one of arm64, x86_64."
  }
}

variable "memory_size" {
  type        = number
  default     = 1769
  description = "Memory of one execution environment in MB; its share of CPU grows with it"

  validation {
    condition     = var.memory_size >= 512 && var.memory_size <= 10240
    error_message = "memory_size must be from 512 to 10240."
  }
}

variable "reserved_concurrency" {
  type        = string
  default     = ""
  description = "Largest number of requests at once, reserved from the account's limit; empty - nothing is reserved and only the account limits"

  validation {
    condition     = can(regex("^(|[1-9][0-9]{0,4})$", var.reserved_concurrency))
    error_message = "reserved_concurrency must be empty or a whole number from 1."
  }
}

variable "l1_cache_bytes" {
  type        = string
  default     = ""
  description = "Size of the prediction cache inside one execution environment, in bytes; 0 - no such cache; empty - the function's default"

  validation {
    condition     = can(regex("^(|0|[1-9][0-9]{0,10})$", var.l1_cache_bytes))
    error_message = "l1_cache_bytes must be empty or a whole number."
  }
}

variable "cache_policy" {
  type        = string
  default     = "adaptive"
  description = "When the function reads the shared cache; adaptive - when reading is expected to be faster than computing"

  validation {
    condition     = contains(["adaptive", "always", "off"], var.cache_policy)
    error_message = "cache_policy must be one of adaptive, always, off."
  }
}

variable "log_level" {
  type        = string
  default     = "info"
  description = "info - one JSON line per request; off - no lines"

  validation {
    condition     = contains(["info", "off"], var.log_level)
    error_message = "log_level must be one of info, off."
  }
}

variable "auth_mode" {
  type        = string
  default     = "IAM"
  description = "Callers that may use the API. IAM - callers that sign their requests and may execute-api:Invoke; JWT - callers with a token of jwt_issuer; None - everybody, at your expense"

  validation {
    condition     = contains(["IAM", "JWT", "None"], var.auth_mode)
    error_message = "auth_mode must be one of IAM, JWT, None."
  }
}

variable "jwt_issuer" {
  type        = string
  default     = ""
  description = "Issuer of the tokens; only in auth_mode JWT"

  validation {
    condition     = can(regex("^(|https://.+)$", var.jwt_issuer))
    error_message = "jwt_issuer must be empty or an address that begins with https://."
  }

  validation {
    condition     = (var.auth_mode == "JWT") == (var.jwt_issuer != "")
    error_message = "auth_mode JWT needs jwt_issuer, and no other auth_mode takes it."
  }
}

variable "jwt_audience" {
  type        = string
  default     = ""
  description = "Audience that a token must name; only in auth_mode JWT"

  validation {
    condition     = (var.auth_mode == "JWT") == (var.jwt_audience != "")
    error_message = "auth_mode JWT needs jwt_audience, and no other auth_mode takes it."
  }
}

variable "cors_allow_origin" {
  type        = string
  default     = ""
  description = "Origin whose web pages may call the API; empty - none may"

  validation {
    condition     = can(regex("^(|\\*|https?://[^/]+)$", var.cors_allow_origin))
    error_message = "cors_allow_origin must be empty, * or an origin without a path, as https://example.com."
  }
}

variable "throttle_rate" {
  type        = number
  default     = 100
  description = "Mean number of requests per second above which the API answers 429"

  validation {
    condition     = var.throttle_rate >= 1
    error_message = "throttle_rate must be 1 or more."
  }
}

variable "throttle_burst" {
  type        = number
  default     = 200
  description = "Number of requests at once above which the API answers 429"

  validation {
    condition     = var.throttle_burst >= 1
    error_message = "throttle_burst must be 1 or more."
  }
}

variable "alarm_email" {
  type        = string
  default     = ""
  description = "Address that receives alarms once it is confirmed; empty - alarms are only shown"

  validation {
    condition     = can(regex("^(|[^@ ]+@[^@ ]+\\.[^@ ]+)$", var.alarm_email))
    error_message = "alarm_email must be empty or an e-mail address."
  }
}

variable "latency_alarm_ms" {
  type        = number
  default     = 1000
  description = "Alarm when p99 of the function's duration is above this number of ms for five minutes"

  validation {
    condition     = var.latency_alarm_ms >= 1
    error_message = "latency_alarm_ms must be 1 or more."
  }
}

variable "init_alarm_ms" {
  type        = number
  default     = 5000
  description = "Alarm when an environment takes longer than this number of ms to start; at 10000 Lambda restarts it"

  validation {
    condition     = var.init_alarm_ms >= 1
    error_message = "init_alarm_ms must be 1 or more."
  }
}

variable "cost_alarm_usd" {
  type        = number
  default     = 10
  description = "Alarm when the function's requests of a day cost more than this number of USD"

  validation {
    condition     = var.cost_alarm_usd >= 0.01
    error_message = "cost_alarm_usd must be 0.01 or more."
  }
}

variable "log_retention_days" {
  type        = number
  default     = 30
  description = "Days until log lines are deleted"

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "keep_failed_events" {
  type        = string
  default     = "on"
  description = "on - the queue FailedEvents keeps an asynchronous request that fails every attempt, with its texts, for 14 days; off - it is discarded. Requests to the API are never kept"

  validation {
    condition     = contains(["on", "off"], var.keep_failed_events)
    error_message = "keep_failed_events must be one of on, off."
  }
}
