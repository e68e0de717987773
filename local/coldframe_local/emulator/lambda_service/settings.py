"""Settings of one version of a function, for the Lambda service."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from coldframe.capacity.admission import LATEST
from coldframe.capacity.limits import INIT, INIT_AHEAD

RESTORE_MS = 997.0
ACCOUNT_ID = "123456789012"
INTERPRETER = f"python{sys.version_info.major}.{sys.version_info.minor}"
"""The managed runtime that this machine's interpreter stands for."""


class LogFormat(StrEnum):
    """Lambda's two formats of logs."""

    TEXT = "Text"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """`LoggingConfig` of a function. The levels hold for the JSON format only.

    application_level: of the function's own logs, "TRACE" to "FATAL". system_level: of Lambda's lines,
    "DEBUG", "INFO" or "WARN". AWS adds lines of its own at DEBUG; here there are none.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html,
    read 2026-11-21.
    """

    log_format: LogFormat = LogFormat.TEXT
    application_level: str = "INFO"
    system_level: str = "INFO"

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LoggingConfig:
        """As a template has it: LogFormat, ApplicationLogLevel, SystemLogLevel."""
        return cls(
            LogFormat(properties.get("LogFormat", LogFormat.TEXT)),
            properties.get("ApplicationLogLevel", "INFO"),
            properties.get("SystemLogLevel", "INFO"),
        )


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """A version of a function as the Lambda service knows it.

    task_root: what is /var/task on Lambda; `python` folders of the layers beside it are /opt/python.
    environ: the function's own variables.
    architecture: "x86_64" or "arm64", for its price.
    runtime: the managed runtime, such as "python3.13", of a zip function; None: an image brings its own.
    cpu_from_memory: the CPU is in proportion to memory during an invocation.
    freeze: nothing of the function runs between invocations, where this machine can see to it.
    snapstart: environments of published versions start from a snapshot. restore_ms: the part of a restore
    that is AWS's own and cannot be measured here. The default is all that callers waited with SnapStart in
    LambdaNER-Bench (2026-10): a quantized DistilBERT as a zip of 1769 MB.
    init_limit_s: an on-demand init phase is stopped after this, and run again inside the invocation.
    provisioned_init_limit_s: the same for provisioned environments, unless the timeout is longer.
    Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html, read 2026-11.
    """

    handler: str
    task_root: Path
    memory_mb: int
    timeout_s: float
    environ: Mapping[str, str] = field(default_factory=dict)
    name: str = "coldframe-predict"
    version: str = "$LATEST"
    architecture: str = "x86_64"
    runtime: str | None = None
    logging: LoggingConfig = LoggingConfig()
    cpu_from_memory: bool = False
    freeze: bool = True
    snapstart: bool = False
    restore_ms: float = RESTORE_MS
    init_limit_s: float = float(INIT.value)
    provisioned_init_limit_s: float = float(INIT_AHEAD.value)

    @property
    def starts_from_snapshot(self) -> bool:
        """Whether this version is one that SnapStart applies to: `$LATEST` never is."""
        return self.snapstart and self.version != LATEST

    @property
    def region(self) -> str:
        """The AWS region that the function believes to be in."""
        return self.environ.get("AWS_REGION", "us-east-1")

    def arn(self, qualifier: str | None = None) -> str:
        """The function's name for all of AWS, with the qualifier where one is given."""
        unqualified = f"arn:aws:lambda:{self.region}:{ACCOUNT_ID}:function:{self.name}"
        return f"{unqualified}:{qualifier}" if qualifier else unqualified
