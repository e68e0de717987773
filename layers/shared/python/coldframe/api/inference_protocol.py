"""The Open Inference Protocol, version 2, with the binary tensor extension."""

import math
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TypeAlias

import msgspec

from coldframe import __version__
from coldframe.api.catalogue import Named, find_protocol_model
from coldframe.api.inference_checks import check_supported, only_input, wanted_outputs
from coldframe.api.inference_schemas import (
    InferReply,
    InferRequest,
    ModelMetadata,
    ModelParameters,
    ModelReady,
    ServerLive,
    ServerMetadata,
    ServerReady,
    TensorMetadata,
)
from coldframe.api.messages import (
    BINARY,
    Reply,
    Request,
    deadline_of,
    decode_json,
    json_reply,
    read_body,
    work_log,
)
from coldframe.api.tensors import (
    Floats,
    InputTensor,
    OutputValues,
    find_inputs,
    read_matrix,
    read_texts,
    split_body,
    write_output,
)
from coldframe.cache.cache import Unsaved
from coldframe.config import Settings
from coldframe.errors import Invalid, NotFound
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.pipeline.models import Models
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import Deadline, StageTimes
from coldframe.vectors import VALUE_BYTES, Vector, to_floats, to_vector

_DECODER = msgspec.json.Decoder(InferRequest)
_HEADER_LENGTH = "inference-header-content-length"
_EXAMPLE = '{"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["…"]}]}'
_TOO_LARGE_HINT = "Request binary outputs, or fewer outputs (not `scores`), or send fewer texts."
_ANY = -1
_OF_TEXTS = (AUTO, ENSEMBLE)
_LAST_INTERACTIVE = 1  # 0 is the default and means the same

_Computed: TypeAlias = tuple[Mapping[str, OutputValues], StageTimes, dict[str, object], Unsaved]
"""Output values, stage times, fields for the log line, and entries for the shared cache."""


class InferenceProtocol:
    """Answers the routes under `/v2` for one environment."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self._models = models
        self._settings = settings

    def server(self, request: Request) -> Reply:
        """`GET /v2`"""
        return json_reply(ServerMetadata("coldframe", __version__, ["binary_tensor_data", "schedule_policy"]))

    def live(self, request: Request) -> Reply:
        """`GET /v2/health/live`"""
        return json_reply(ServerLive(True))

    def ready(self, request: Request) -> Reply:
        """`GET /v2/health/ready`: 503 when a model cannot be loaded."""
        self._models.all()
        return json_reply(ServerReady(True))

    def model(self, request: Request) -> Reply:
        """`GET /v2/models/{model}`"""
        served = self._named(request)
        head, labels = served.head, served.predictor.manifest.labels
        embedding = TensorMetadata("embedding", "FP32", [_ANY, served.predictor.encoder.facts.dimension])
        text = TensorMetadata("text", "BYTES", [_ANY])
        if head is None:
            inputs, outputs = [text], [embedding]
            parameters = ModelParameters(inputs="text")
        else:
            inputs = [tensor for tensor in (text, embedding) if tensor.name in _inputs_of(head)]
            outputs = [
                TensorMetadata("label", "BYTES", [_ANY]),
                TensorMetadata("probability", "FP32", [_ANY]),
                TensorMetadata("scores", "FP32", [_ANY, len(labels)]),
            ]
            expected = "text" if head in _OF_TEXTS else "exactly one of text, embedding"
            parameters = ModelParameters(inputs=expected, labels=labels)
        name = request.params["model"]
        return json_reply(
            ModelMetadata(
                name, [served.version], f"coldframe_{head or 'encoder'}", inputs, outputs, parameters
            )
        )

    def model_ready(self, request: Request) -> Reply:
        """`GET /v2/models/{model}/ready`"""
        self._named(request)
        return json_reply(ModelReady(request.params["model"], True))

    def infer(self, request: Request) -> Reply:
        """`POST /v2/models/{model}/infer`"""
        served = self._named(request)
        raw = read_body(request, self._settings, also=frozenset({BINARY}))
        content, binary = split_body(raw, request.headers.get(_HEADER_LENGTH))
        body = decode_json(content, _DECODER, _EXAMPLE)
        check_supported(body)
        names = ("embedding",) if served.head is None else ("label", "probability", "scores")
        outputs = wanted_outputs(body, names)
        inputs = find_inputs(body.inputs, binary)
        if request.caller is not None:
            request.caller.bulk = _is_bulk(body)
        deadline = deadline_of(request, _budget_s(request, body))
        values, times, log, unsaved = (
            self._encode(served.predictor, inputs, deadline)
            if served.head is None
            else self._classify(served.predictor, served.head, body, inputs, deadline)
        )
        reply = self._reply(request, served.version, body, values, outputs)
        return Reply(
            reply.status,
            reply.body,
            {**reply.headers, "server-timing": times.server_timing()},
            {"model": request.params["model"], "version": served.version, **log},
            _TOO_LARGE_HINT,
            unsaved,
        )

    def _named(self, request: Request) -> Named:
        """The encoder or head in the path. Raises NotFound, also for a version that is not served."""
        served = find_protocol_model(self._models, request.params["model"])
        if request.params.get("version", served.version) != served.version:
            raise NotFound(f"There is no such version of this model. Request version {served.version}.")
        return served

    def _encode(
        self, predictor: Predictor, inputs: Mapping[str, InputTensor], deadline: Deadline
    ) -> _Computed:
        tensor = only_input(inputs, ("text",))
        embedded = predictor.embed(read_texts(tensor, self._settings.max_texts), deadline)
        values = {"embedding": _floats(embedded.vectors, predictor.encoder.facts.dimension)}
        return values, embedded.times, work_log(embedded), embedded.unsaved

    def _classify(
        self,
        predictor: Predictor,
        head: str,
        body: InferRequest,
        inputs: Mapping[str, InputTensor],
        deadline: Deadline,
    ) -> _Computed:
        tensor = only_input(inputs, _inputs_of(head))
        limit, labels = self._settings.max_texts, predictor.manifest.labels
        least = _least_probability(predictor, head, body)
        if tensor.name == "text":
            prediction = predictor.predict(read_texts(tensor, limit), [head], deadline=deadline)
            scores = [answer[:-VALUE_BYTES] for answer in prediction.answers[head]]
            return _outputs(labels, scores, least), prediction.times, work_log(prediction), prediction.unsaved
        rows = read_matrix(tensor, predictor.encoder.facts.dimension, limit)
        times = StageTimes()
        with times.stage("heads"):
            probabilities = _predict_rows(predictor, rows, head)
        return _outputs(labels, probabilities, least), times, times.log_fields(), {}

    def _reply(
        self,
        request: Request,
        version: str,
        body: InferRequest,
        values: Mapping[str, OutputValues],
        outputs: Mapping[str, bool],
    ) -> Reply:
        tensors = [write_output(name, values[name], binary) for name, binary in outputs.items()]
        reply = InferReply(
            model_name=request.params["model"],
            model_version=version,
            outputs=[output for output, _ in tensors],
            id=body.id,
        )
        if not any(outputs.values()):
            return json_reply(reply)
        header = msgspec.json.encode(reply)
        headers = {"content-type": BINARY, _HEADER_LENGTH: str(len(header))}
        return Reply(HTTPStatus.OK, b"".join([header, *(content for _, content in tensors)]), headers)


def _predict_rows(predictor: Predictor, rows: Sequence[Vector], head: str) -> list[Vector]:
    """Probabilities (k,) of each row. Raises Invalid for the first row that overflows."""
    probabilities = predictor.model.heads.probabilities(rows, head)
    for index, row in enumerate(probabilities):
        if not math.isfinite(sum(to_floats(row))):
            raise Invalid(
                f'Row {index} of input "embedding" is too large to compute with.'
                " Send rows of length 1, as the encoder returns them."
            )
    return probabilities


def _outputs(labels: Sequence[str], scores: Sequence[Vector], least: float) -> dict[str, OutputValues]:
    """least: smallest probability; a label below it becomes empty, since a tensor has no null."""
    rows = [to_floats(row) for row in scores]
    highest = [max(row) for row in rows]
    answers = [
        labels[row.index(value)] if value >= least else "" for row, value in zip(rows, highest, strict=True)
    ]
    return {
        "label": answers,
        "probability": Floats([len(rows)], to_vector(highest)),
        "scores": _floats(scores, len(labels)),
    }


def _floats(rows: Sequence[Vector], columns: int) -> Floats:
    """The FP32 tensor [n, columns] of `rows`."""
    return Floats([len(rows), columns], b"".join(rows))


def _least_probability(predictor: Predictor, head: str, body: InferRequest) -> float:
    requested = body.parameters.min_probability if body.parameters else None
    return predictor.min_probability[head] if requested is None else requested


def _budget_s(request: Request, body: InferRequest) -> float:
    """Time that the caller allows, less the time already spent, in seconds."""
    timeout_us = body.parameters.timeout if body.parameters else None
    if not timeout_us:
        return math.inf
    waited_s = 0.0 if request.arrived_s is None else time.monotonic() - request.arrived_s
    return timeout_us / 1e6 - waited_s


def _is_bulk(body: InferRequest) -> bool:
    """Whether the caller yields to other requests."""
    priority = body.parameters.priority if body.parameters else None
    return priority is not None and priority > _LAST_INTERACTIVE


def _inputs_of(head: str) -> tuple[str, ...]:
    """Inputs of a head. `auto` needs the words of a text, also as a member of `ensemble`."""
    return ("text",) if head in _OF_TEXTS else ("text", "embedding")
