"""Messages of the Open Inference Protocol, version 2, from which OpenAPI is generated.

Source: https://github.com/kserve/open-inference-protocol (read 2026-11). The protocol says that unknown
parameters are ignored. `priority` and `timeout` come from Triton's schedule-policy extension, which the stock
client sends:
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_schedule_policy.md
(read 2026-11).
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

Dimension = Annotated[int, Meta(ge=0)]


class InputParameters(Struct):
    """Parameters of an input."""

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
    """Parameters of a requested output."""

    binary_data: bool | None = None
    classification: int | None = None
    shared_memory_region: str | None = None


class RequestedOutput(Struct):
    """An output by name, and how to send it."""

    name: str
    parameters: RequestedParameters | None = None


class InferParameters(Struct):
    """Parameters of a request."""

    binary_data_output: Annotated[bool, Meta(description="Send all outputs as binary data.")] | None = None
    min_probability: (
        Annotated[float, Meta(ge=0, le=1, description="A label below this probability is empty.")] | None
    ) = None
    priority: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="0 and 1: interactive; 2 and more: bulk, which runs after interactive requests.",
            ),
        ]
        | None
    ) = None
    timeout: Annotated[int, Meta(ge=0, description="Microseconds for the answer; 0: no limit.")] | None = None


class InferRequest(Struct):
    """Body of `POST /v2/models/{model}/infer`: JSON, or the JSON part of a binary body."""

    inputs: Annotated[list[InferInput], Meta(min_length=1, max_length=8)]
    outputs: Annotated[list[RequestedOutput], Meta(max_length=8)] | None = None
    id: Annotated[str, Meta(max_length=256)] | None = None
    parameters: InferParameters | None = None


class OutputParameters(Struct):
    """Parameters of a binary output in the answer."""

    binary_data_size: int


class InferOutput(Struct, omit_defaults=True):
    """One output; its elements are in `data`, or after the JSON part."""

    name: str
    datatype: str
    shape: list[int]
    parameters: OutputParameters | None = None
    data: Sequence[str | float] | None = None


class InferReply(Struct, omit_defaults=True):
    """Answer of `POST /v2/models/{model}/infer`."""

    model_name: str
    model_version: str
    outputs: list[InferOutput]
    id: str | None = None


class ServerMetadata(Struct):
    """Answer of `GET /v2`."""

    name: str
    version: str
    extensions: list[str]


class ServerLive(Struct):
    """Answer of `GET /v2/health/live`."""

    live: Literal[True]


class ServerReady(Struct):
    """Answer of `GET /v2/health/ready`."""

    ready: Literal[True]


class ModelReady(Struct):
    """Answer of `GET /v2/models/{model}/ready`."""

    name: str
    ready: Literal[True]


class TensorMetadata(Struct):
    """An input or output; a dimension of -1 is the number of texts."""

    name: str
    datatype: str
    shape: list[int]


class ModelParameters(Struct, omit_defaults=True):
    """Facts of a model that the protocol has no field for."""

    inputs: str
    labels: list[str] | None = None


class ModelMetadata(Struct):
    """Answer of `GET /v2/models/{model}`."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    parameters: ModelParameters
