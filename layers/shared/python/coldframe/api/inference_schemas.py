"""Messages of the Open Inference Protocol, version 2, from which OpenAPI is generated.

Source: https://github.com/kserve/open-inference-protocol (read 2026-11). Parameters
that are not named here are ignored, as the protocol has it. `priority` and `timeout` are those of Triton's
schedule-policy extension, which the stock client sends:
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_schedule_policy.md
(read 2026-11).
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

Dimension = Annotated[int, Meta(ge=0)]


class InputParameters(Struct):
    """What may be said of an input."""

    binary_data_size: Annotated[int, Meta(ge=0, description="Its bytes after the JSON part.")] | None = None
    shared_memory_region: str | None = None


class InferInput(Struct):
    """One input. Its elements are in `data`, or after the JSON part of the body."""

    name: str
    shape: Annotated[list[Dimension], Meta(max_length=8)]
    datatype: str
    parameters: InputParameters | None = None
    data: list[str | float | list[float]] | None = None


class RequestedParameters(Struct):
    """What may be asked of an output."""

    binary_data: bool | None = None
    classification: int | None = None
    shared_memory_region: str | None = None


class RequestedOutput(Struct):
    """An output by name, and how to send it."""

    name: str
    parameters: RequestedParameters | None = None


class InferParameters(Struct):
    """What may be said of a request."""

    binary_data_output: Annotated[bool, Meta(description="Send all outputs as binary data.")] | None = None
    min_probability: (
        Annotated[float, Meta(ge=0, le=1, description="A label below this probability is empty.")] | None
    ) = None
    priority: (
        Annotated[int, Meta(ge=0, description="0 and 1: interactive; 2 and more: bulk, after those.")] | None
    ) = None
    timeout: Annotated[int, Meta(ge=0, description="Microseconds for the answer; 0: no limit.")] | None = None


class InferRequest(Struct):
    """What `POST /v2/models/{model}/infer` reads, as JSON or as the JSON part of a binary body."""

    inputs: Annotated[list[InferInput], Meta(min_length=1, max_length=8)]
    outputs: Annotated[list[RequestedOutput], Meta(max_length=8)] | None = None
    id: Annotated[str, Meta(max_length=256)] | None = None
    parameters: InferParameters | None = None


class OutputParameters(Struct):
    """What is said of a binary output."""

    binary_data_size: int


class InferOutput(Struct, omit_defaults=True):
    """One output; its elements are in `data`, or after the JSON part."""

    name: str
    datatype: str
    shape: list[int]
    parameters: OutputParameters | None = None
    data: Sequence[str | float] | None = None


class InferReply(Struct, omit_defaults=True):
    """What `POST /v2/models/{model}/infer` answers."""

    model_name: str
    model_version: str
    outputs: list[InferOutput]
    id: str | None = None


class ServerMetadata(Struct):
    """What `GET /v2` answers."""

    name: str
    version: str
    extensions: list[str]


class ServerLive(Struct):
    """What `GET /v2/health/live` answers."""

    live: Literal[True]


class ServerReady(Struct):
    """What `GET /v2/health/ready` answers."""

    ready: Literal[True]


class ModelReady(Struct):
    """What `GET /v2/models/{model}/ready` answers."""

    name: str
    ready: Literal[True]


class TensorMetadata(Struct):
    """An input or output; a dimension of -1 is the number of texts."""

    name: str
    datatype: str
    shape: list[int]


class ModelParameters(Struct, omit_defaults=True):
    """What the protocol has no word for."""

    inputs: str
    labels: list[str] | None = None


class ModelMetadata(Struct):
    """What `GET /v2/models/{model}` answers."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    parameters: ModelParameters
