"""Options of the emulator: the template to run, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.limits import CONCURRENCY, HTTP_INTEGRATION, INIT, MAX_AGE, VCPU
from coldframe.capacity.switches import ALL_RATES, Switches
from coldframe_local.emulator.gateway.definitions import (
    ANY,
    DEFAULT_ROUTE,
    Api,
    ApiKind,
    PayloadFormat,
    Route,
)
from coldframe_local.emulator.lambda_service.settings import INTERPRETER, FunctionSettings
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log
from coldframe_local.emulator.stores.places import StoreOptions
from coldframe_local.emulator.template.functions.functions import Function
from coldframe_local.emulator.template.template import Template

_LIVE = "live"


def _print(line: str) -> None:
    print(line, flush=True)


@dataclass(frozen=True)
class EmulatorOptions:
    """How a template is run. Units end the names.

    template: what to run; `one_function` makes one without a file.
    port: 0 takes a free one; `Emulator.url` says which.
    max_environments: the most environments at once that this machine is to bear of a function without
    reserved concurrency, unless more is provisioned; it is not a reservation. None: what the account has.
    switches: which of AWS's rates hold. max_age_s: of an environment; None: no limit.
    idle_expiry, seed: idle environments are kept for a time that is drawn for each; None: for keep_alive_s.
    stores: where tables, buckets and queues of the template are.
    schedules: whether schedules of the template run.
    event_source_mappings: whether queues of the template are read for their functions.
    reload: environments are replaced when the code of their function changes.
    as_aws: failures of functions have AWS's statuses and bodies instead of explaining ones.
    verbose: every property of the template that is ignored gets a line of the log.
    environ: variables of every function, over the template's and the COLDFRAME_* ones of this process.
    """

    template: Template
    host: str = "127.0.0.1"
    port: int = 3000
    max_environments: int | None = None
    account_concurrency: int = CONCURRENCY.value
    switches: Switches = ALL_RATES
    keep_alive_s: float = 600.0
    idle_expiry: IdleExpiry | None = None
    max_age_s: float | None = MAX_AGE.value
    seed: int = 0
    environ: Mapping[str, str] = field(default_factory=dict)
    stores: StoreOptions = field(default_factory=StoreOptions)
    schedules: bool = True
    event_source_mappings: bool = True
    reload: bool = False
    as_aws: bool = False
    verbose: bool = True
    log: Log = _print


def one_function(
    handler: str,
    task_root: Path,
    *,
    memory_mb: int = VCPU.value,
    timeout_s: float = 29.0,
    init_limit_s: float = INIT.value,
    architecture: str = "x86_64",
    cpu_from_memory: bool = False,
    provisioned_concurrency: int = 0,
) -> Template:
    """The template of one function that answers every path of one HTTP API, through its alias `live`.

    init_limit_s: an init phase that takes longer is run again inside the invocation.
    provisioned_concurrency: of the function's alias `live`; 0 for none.
    """
    settings = FunctionSettings(
        handler=handler,
        task_root=task_root.resolve(),
        memory_mb=memory_mb,
        timeout_s=timeout_s,
        init_limit_s=init_limit_s,
        architecture=architecture,
        runtime=INTERPRETER,
        cpu_from_memory=cpu_from_memory,
    )
    patience_s = HTTP_INTEGRATION.value / 1000
    route = Route(ANY, DEFAULT_ROUTE, settings.name, _LIVE, PayloadFormat.V2, patience_s)
    function = Function(
        settings, logical_id=settings.name, alias=_LIVE, provisioned_concurrency=provisioned_concurrency
    )
    return Template(functions=(function,), apis=(Api("local", ApiKind.HTTP, (route,)),))
