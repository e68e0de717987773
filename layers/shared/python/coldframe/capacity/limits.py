"""AWS's limits and defaults, each with its value, its source and the date of reading."""

from dataclasses import dataclass

_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
_LOGS = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html"
_HTTP_API = "https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html"
_REST_API = "https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html"
_ACCOUNT_THROTTLING = "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html"
_TIMEOUT = "https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html"
_RUNTIME = "https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html"
_SNAPSTART = "https://docs.aws.amazon.com/lambda/latest/dg/snapstart.html"
_CONCURRENCY = "https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html"
_PROVISIONED = "https://docs.aws.amazon.com/lambda/latest/dg/provisioned-concurrency.html"
_SCALING = "https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html"
_MEMORY = "https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"

_RAISED = (
    "https://repost.aws/questions/QUlDTc_17EQ_mOJAhR3LHNDw/what-the-maximum-default-timeout-for-api-gateway"
    "-can-be-increased-to-after-applying-for-a-service-quotas-limit-increase"
)

_MB = 1024 * 1024


@dataclass(frozen=True)
class Quota:
    """A limit or default of AWS. unit: unit of its value, in words."""

    value: int
    unit: str
    source: str
    read: str = "2026-11-20"

    def __str__(self) -> str:
        return f"{self.value:,} {self.unit} ({self.source}, read {self.read})"


# A function.
TIMEOUT = Quota(900, "s", _LAMBDA)
DEFAULT_TIMEOUT = Quota(3, "s", _TIMEOUT)
MANAGED_TIMEOUT = Quota(
    5400, "s on managed instances, for asynchronous events and event sources", _TIMEOUT, "2026-11-25"
)
MEMORY = Quota(10_240, "MB", _LAMBDA)
MIN_MEMORY = Quota(128, "MB", _LAMBDA)
DEFAULT_MEMORY = Quota(128, "MB, by default", _MEMORY)
VCPU = Quota(1769, "MB of memory for one vCPU", _MEMORY)
STORAGE = Quota(10_240, "MB", _LAMBDA)
ENVIRONMENT = Quota(4096, "bytes of environment variables", _LAMBDA)
LAYERS = Quota(5, "layers", _LAMBDA)
ZIP = Quota(250 * _MB, "bytes unzipped, layers included", _LAMBDA)
ZIPPED = Quota(50 * _MB, "bytes zipped, uploaded directly", _LAMBDA)
CODE = Quota(75 * 1024 * _MB, "bytes of all zip functions and layers of an account", _LAMBDA)
IMAGE = Quota(10 * 1024 * _MB, "bytes uncompressed", _LAMBDA)
FILES = Quota(1024, "open files of an environment", _LAMBDA)
SNAPSTART_STORAGE = Quota(512, "MB of /tmp with SnapStart", _SNAPSTART)

# An invocation.
PAYLOAD = Quota(6 * _MB, "bytes each way", _LAMBDA)
ASYNC_PAYLOAD = Quota(_MB, "bytes of an asynchronous event", _LAMBDA)
INIT = Quota(10, "s of init on demand", _RUNTIME)
INIT_AHEAD = Quota(130, "s of init ahead of traffic, or the function's timeout if that is longer", _RUNTIME)

# Concurrency.
CONCURRENCY = Quota(1000, "environments of an account in a region, until AWS raises it", _LAMBDA)
UNRESERVED = Quota(100, "environments that must stay unreserved", _CONCURRENCY)
SCALING = Quota(1000, "environments that a function may start in 10 s", _SCALING)
REQUEST_RATE = Quota(10, "synchronous requests a second for each unit of concurrency", _LAMBDA, "2026-11-21")
REQUEST_SCALING = Quota(
    10_000, "requests a second by which a function's rate may grow in 10 s", _SCALING, "2026-11-22"
)
SCALING_PERIOD = Quota(10, "s in which a function may start that many environments", _SCALING)
ALLOCATION = Quota(
    6000, "provisioned environments that a function may allocate in a minute", _PROVISIONED, "2026-11-21"
)
# "Lambda starts allocating provisioned concurrency after a minute or two of preparation."
ALLOCATION_DELAY = Quota(
    90, "s, the middle of a minute or two, before a level is allocated", _PROVISIONED, "2026-11-22"
)
# AWS says "every few hours" and gives no number: https://theburningmonk.com/2017/06/finding-coldstarts-how-
# long-does-aws-lambda-keep-your-idle-functions-around/ reports about four hours for the host, read
# 2026-11-21.
MAX_AGE = Quota(4 * 3600, "s that an environment lives at most, busy or not", _RUNTIME, "2026-11-21")

# CloudWatch Logs.
SUBSCRIPTIONS = Quota(2, "subscriptions of a log group", _LOGS, "2026-11-25")

# Provisioned pollers of a queue.
_POLLERS = "https://docs.aws.amazon.com/lambda/latest/api/API_ProvisionedPollerConfig.html"
LEAST_POLLERS = Quota(2, "pollers of a queue at least", _POLLERS, "2026-11-25")
KEPT_POLLERS = Quota(200, "pollers of a queue that are always kept", _POLLERS, "2026-11-25")
POLLERS = Quota(10_000, "pollers of a queue at most", _POLLERS, "2026-11-25")

# API Gateway.
HTTP_INTEGRATION = Quota(30_000, "ms that an HTTP API waits", _HTTP_API)
REST_INTEGRATION = Quota(29_000, "ms that a REST API waits, until AWS raises it", _REST_API)
RAISED_REST_INTEGRATION = Quota(
    300_000, "ms that a regional or private REST API can wait", _RAISED, "2026-11-21"
)
MIN_INTEGRATION = Quota(50, "ms at least that an API waits", _REST_API)
BODY = Quota(10 * _MB, "bytes of a request", _HTTP_API)
HEADERS = Quota(10_240, "bytes of request line and header values, of an HTTP API", _HTTP_API, "2026-11-21")
REST_HEADERS = Quota(10_240, "bytes of header values, of a REST API", _REST_API, "2026-11-21")
API_RATE = Quota(10_000, "requests per second of an account", _ACCOUNT_THROTTLING)
API_BURST = Quota(5_000, "requests at once of an account", _ACCOUNT_THROTTLING)

# CloudWatch Logs.
LOG_EVENTS = Quota(
    10_000,
    "log events in a page of FilterLogEvents",
    "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html",
    "2026-11-25",
)

# Step Functions.
MAP_CHILDREN = Quota(
    10_000,
    "children of a Distributed Map at once",
    "https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html",
    "2026-11-22",
)
EXECUTION_DATA = Quota(
    256 * 1024,
    "bytes of an execution's input or output",
    "https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html",
    "2026-11-22",
)

# DynamoDB.
ITEM = Quota(
    400 * 1024,
    "bytes of a DynamoDB item",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
)
BATCH_GET = Quota(
    100,
    "items of one BatchGetItem",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html",
)
