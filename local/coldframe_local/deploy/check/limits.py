"""Rules of `coldframe check` about sizes and times."""

from collections.abc import Iterator
from pathlib import Path

from coldframe.capacity import limits as quotas
from coldframe.errors import BundleMissing
from coldframe.model.files import served_models
from coldframe_local.deploy.check.deployment import (
    Deployment,
    Finding,
    Properties,
    number_of,
    over_quota,
    references,
    text_of,
    variables_of,
)

_ITEM_OVERHEAD_BYTES = 256  # key, expiry, header and the names of the attributes, rounded up


def timeout_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """A timeout longer than Lambda lets a function run."""
    for name, properties in deployment.functions.items():
        timeout_s = _timeout_s(properties)
        quota = quotas.MANAGED_TIMEOUT if "CapacityProviderConfig" in properties else quotas.TIMEOUT
        if timeout_s > quota.value:
            yield over_quota("TimeoutOverQuota", name, "Timeout", timeout_s, quota, "Lower Timeout")


def timeout_over_integration(deployment: Deployment) -> Iterator[Finding]:
    """An API that gives up while the function still works, and is paid for."""
    for call in deployment.integrations:
        timeout_ms = _timeout_s(deployment.functions[call.function]) * 1000
        if call.timeout_ms > quotas.HTTP_INTEGRATION.value:
            quota = quotas.HTTP_INTEGRATION
            fix = f"Set it to {quota.value}"
            yield over_quota(
                "TimeoutOverIntegration", call.api, "timeoutInMillis", call.timeout_ms, quota, fix
            )
        elif timeout_ms >= call.timeout_ms:
            yield Finding(
                "TimeoutOverIntegration",
                call.function,
                f"Timeout is {timeout_ms} ms, and {call.api} stops waiting after {call.timeout_ms} ms",
                f"Set Timeout to {call.timeout_ms // 1000 - 1}; a slow request then ends in the log",
            )


def memory_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """More memory than an environment can have."""
    for name, properties in deployment.functions.items():
        memory_mb = number_of(properties.get("MemorySize"), quotas.DEFAULT_MEMORY.value)
        if memory_mb > quotas.MEMORY.value:
            yield over_quota(
                "MemoryOverQuota", name, "MemorySize", memory_mb, quotas.MEMORY, "Lower MemorySize"
            )


def storage_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """A larger /tmp than an environment, or a snapshot, can have."""
    for name, properties in deployment.functions.items():
        storage_mb = number_of(properties.get("EphemeralStorage", {}).get("Size"), 512)
        quota = quotas.SNAPSTART_STORAGE if deployment.has_snapstart(name) else quotas.STORAGE
        if storage_mb > quota.value:
            fix = "Lower EphemeralStorage.Size" + (
                ", or leave SnapStart" if quota is not quotas.STORAGE else ""
            )
            yield over_quota("StorageOverQuota", name, "EphemeralStorage.Size", storage_mb, quota, fix)


def environment_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """More environment variables than a function can have."""
    for name, properties in deployment.functions.items():
        size = sum(len(k) + len(text_of(v)) for k, v in variables_of(properties).items())
        if size > quotas.ENVIRONMENT.value:
            fix = "Shorten Environment.Variables"
            yield over_quota("EnvironmentOverQuota", name, "Environment", size, quotas.ENVIRONMENT, fix)


def layers_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """More layers than a function can have."""
    for name, properties in deployment.functions.items():
        layers = len(properties.get("Layers", []))
        if layers > quotas.LAYERS.value:
            yield over_quota("LayersOverQuota", name, "Layers", layers, quotas.LAYERS, "Merge some of them")


def payload_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """A limit of ours above Lambda's: such requests or answers would die without a message of ours."""
    names = ("COLDFRAME_MAX_BODY_BYTES", "COLDFRAME_MAX_ANSWER_BYTES")
    for function, properties in deployment.images.items():
        for name in names:
            size = number_of(variables_of(properties).get(name), 0)
            if size > quotas.PAYLOAD.value:
                fix = f"Set {name} to {quotas.PAYLOAD.value} or less"
                yield over_quota("PayloadOverQuota", function, name, size, quotas.PAYLOAD, fix)


def zip_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """Code and layers that are too large for a zip function."""
    folders = deployment.stack.folders
    for name, properties in deployment.functions.items():
        if name in folders:
            layers = [layer for item in properties.get("Layers", []) for layer in references(item)]
            # SAM adds ten hexadecimal digits to the name of a layer.
            size = _size(folders[name]) + sum(
                _size(folders[layer[:-10]]) for layer in layers if layer[:-10] in folders
            )
            if size > quotas.ZIP.value:
                fix = "Make it an image function, as PredictFunction is"
                yield over_quota("ZipOverQuota", name, "Code and layers", size, quotas.ZIP, fix)


def image_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """Models that fit into no image."""
    encoders = {encoder.name: encoder for _, encoder in deployment.models.values()}
    parts = [*encoders.values(), *(model for model, _ in deployment.models.values())]
    size = sum(entry.bytes for part in parts for entry in part.files.values())
    for name in deployment.images:
        if size > quotas.IMAGE.value:
            fix = "Remove models that are not served: coldframe models --remove NAME"
            yield over_quota(
                "ImageOverQuota", name, f"What is in {deployment.model_dir}", size, quotas.IMAGE, fix
            )


def model_not_built(deployment: Deployment) -> Iterator[Finding]:
    """A function that is told to serve a model that its image will not have."""
    for name, properties in deployment.images.items():
        for model in _not_built(deployment, properties):
            problem = f"COLDFRAME_MODELS names {model!r}, which {deployment.model_dir} does not have"
            fix = f"Train it, or name some of: {', '.join(deployment.models)}"
            yield Finding("ModelNotBuilt", name, problem, fix)


def no_default_model(deployment: Deployment) -> Iterator[Finding]:
    """A function without a chosen model, with an image of several models and no record of the default."""
    for name, properties in deployment.images.items():
        try:
            served_models(deployment.model_dir, _models_of(properties))
        except BundleMissing:
            problem = f"Nothing says which one answers of {', '.join(deployment.models)}"
            fix = "Set the parameter Models, or run: coldframe models --default NAME"
            yield Finding("NoDefaultModel", name, problem, fix)


def item_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """Values that the cache can never keep: too large for the table, and there is no bucket for them."""
    numbers = max(
        max(encoder.facts.dimension, len(model.labels)) for model, encoder in deployment.models.values()
    )
    size = 4 * numbers + _ITEM_OVERHEAD_BYTES
    for name, properties in deployment.images.items():
        variables = variables_of(properties)
        has_bucket = bool(variables.get("COLDFRAME_CACHE_BUCKET"))
        if variables.get("COLDFRAME_CACHE_TABLE") and not has_bucket and size > quotas.ITEM.value:
            fix = "Set COLDFRAME_CACHE_BUCKET"
            yield over_quota("ItemOverQuota", name, "A cached value", size, quotas.ITEM, fix)


def init_over_quota(deployment: Deployment) -> Iterator[Finding]:
    """An init phase that Lambda stops and starts over, each time.

    A function that lacks a model is not measured: other rules report it.
    """
    wanting = {finding.where for rule in (model_not_built, no_default_model) for finding in rule(deployment)}
    for name, properties in deployment.images.items():
        if name in wanting:
            continue
        initialization_type = deployment.initialization_type(name)
        on_demand = initialization_type == "on-demand"
        quota = quotas.INIT if on_demand else quotas.INIT_AHEAD
        limit_s = quota.value if on_demand else max(quota.value, _timeout_s(properties))
        init_s = deployment.measure_init_s(_models_of(properties), initialization_type)
        if init_s > limit_s:
            fix = "Load less in the init phase" + (", or use ColdStartMode SnapStart" if on_demand else "")
            problem = f"Init took {init_s:.1f} s here, expected at most {quota}"
            yield Finding("InitOverQuota", name, problem, fix)


def _not_built(deployment: Deployment, properties: Properties) -> list[str]:
    names = [name.strip() for name in _models_of(properties).split(",")]
    return [name for name in names if name and name not in deployment.models]


def _models_of(properties: Properties) -> str:
    return str(variables_of(properties).get("COLDFRAME_MODELS", ""))


def _timeout_s(properties: Properties) -> int:
    return number_of(properties.get("Timeout"), quotas.DEFAULT_TIMEOUT.value)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
