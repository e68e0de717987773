"""Table of handlers by path: the emulator's own pages, the Lambda API, and the APIs of the template."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coldframe.timing import Clock
from coldframe_local.emulator.aws_api.cloudwatch import PATH as CLOUDWATCH_PATH
from coldframe_local.emulator.aws_api.cloudwatch import cloudwatch
from coldframe_local.emulator.aws_api.lambda_api.api import LambdaApi, is_lambda_api
from coldframe_local.emulator.aws_api.logs import PATH as LOGS_PATH
from coldframe_local.emulator.aws_api.logs import logs
from coldframe_local.emulator.aws_api.scaling import PATH as SCALING_PATH
from coldframe_local.emulator.aws_api.scaling import ScheduledActions
from coldframe_local.emulator.console import browsers, console, event_stream
from coldframe_local.emulator.console.console import Console
from coldframe_local.emulator.console.event_stream import EventStream
from coldframe_local.emulator.console.experiment import PATH as EXPERIMENT_PATH
from coldframe_local.emulator.console.experiment import ExperimentHandler
from coldframe_local.emulator.console.what_if import PATH as WHAT_IF_PATH
from coldframe_local.emulator.console.what_if import WhatIfHandler
from coldframe_local.emulator.front.metrics_handler import PATH as METRICS_PATH
from coldframe_local.emulator.front.metrics_handler import MetricsHandler
from coldframe_local.emulator.gateway.gateway import Gateways
from coldframe_local.emulator.gateway.http import Handler, Headers, header
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.event_sources.async_invocations import AsyncInvocations
from coldframe_local.emulator.lambda_service.telemetry.log_groups import LogGroups
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log
from coldframe_local.emulator.options import EmulatorOptions


class Handlers:
    """Handlers of one emulator. address: host and port where this process reaches its own port."""

    def __init__(
        self,
        options: EmulatorOptions,
        service: LambdaService,
        asynchronous: AsyncInvocations,
        address: Callable[[], tuple[str, int]],
        log: Log,
        clock: Clock,
        scaling: ScheduledActions,
        log_groups: LogGroups,
    ) -> None:
        names = browsers.own_names(options.host)
        template = options.template
        self.events = EventStream(service, names)
        self._lambda_api = browsers.OwnPagesOnly(LambdaApi(service, asynchronous), names)
        self._aws: Mapping[str, Handler] = {
            CLOUDWATCH_PATH: browsers.OwnPagesOnly(cloudwatch(service), names),
            LOGS_PATH: browsers.OwnPagesOnly(logs(log_groups), names),
            SCALING_PATH: browsers.OwnPagesOnly(scaling.handler(), names),
        }
        self._console = browsers.OwnPagesOnly(Console(address), names, always=True)
        what_if = browsers.OwnPagesOnly(WhatIfHandler(service, options), names, always=True)
        experiment = browsers.OwnPagesOnly(ExperimentHandler(service), names, always=True)
        self._own_pages: Mapping[str, Handler] = {
            METRICS_PATH: MetricsHandler(service),
            WHAT_IF_PATH: what_if,
            EXPERIMENT_PATH: experiment,
        }
        self._gateways = Gateways(template.apis, service.invoke, log, clock, as_aws=options.as_aws)

    def is_events(self, path: str) -> bool:
        """Whether a path is the stream of events, which has no handler: its answer never ends."""
        return path == event_stream.PATH

    def of(self, path: str, headers: Headers) -> Handler:
        """The handler of a path. Other paths are those of an API, which the header `host` names."""
        if path in self._own_pages:
            return self._own_pages[path]
        if (aws := self._aws.get(path.rstrip("/"))) is not None:
            return aws
        if console.is_console(path):
            return self._console
        if is_lambda_api(path):
            return self._lambda_api
        return self._gateways.of(header(headers, b"host"))
