"""Facts for the OpenAPI document about each route: group, summary, message types, and example requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coldframe import schemas
from coldframe.api import inference_schemas as inference
from coldframe.contract import SQL_PATHS
from coldframe.feedback import schemas as feedback
from coldframe.jobs.records import JobRequest
from coldframe.jobs.schemas import JobReply
from coldframe.sql import schemas as sql

TAGS = {
    "Classify": "Texts to labels with probabilities.",
    "Embed": "Texts to vectors, as OpenAI's API has it.",
    "Models": "What is served: models, their encoders and their heads.",
    "Open Inference Protocol": "The same models by tensors, version 2 of the protocol.",
    "SQL": "Batches of Snowflake, BigQuery and Redshift, by their own contracts. `coldframe sql` prints the"
    " statements that create the functions.",
    "Jobs": "Texts that can wait for their answers.",
    "Feedback": "Right labels for answers that were given.",
    "Health": "Whether every model is loaded.",
}


@dataclass(frozen=True)
class Operation:
    """OpenAPI facts of a route.

    examples: valid bodies by name; the first is the default example. tensors: binary tensors may follow the
    JSON in both directions. status: status of the answer.
    """

    tag: str
    summary: str
    reply: type
    request: type | None = None
    description: str = ""
    examples: Mapping[str, Any] = field(default_factory=dict)
    tensors: bool = False
    status: int = 200


_TEXT = "My parcel has not arrived yet"
_TEXTS = [_TEXT, "The doctor moved my appointment to Friday"]
_TENSOR = {"name": "text", "datatype": "BYTES", "shape": [2], "data": _TEXTS}
_PROTOCOL = "Open Inference Protocol"

_PREDICT = Operation(
    "Classify",
    "Classify texts",
    schemas.PredictReply,
    schemas.PredictRequest,
    "Send `text` or `texts`, not both. The head `auto` runs a lexical estimator first, and the encoder where"
    " the estimator is not sure; the other heads always run the encoder.",
    {
        "One text": {"text": _TEXT},
        "Texts, the three best labels": {"texts": _TEXTS, "top_k": 3},
        "The probability of every label": {"text": _TEXT, "scores": True, "cache": False},
    },
)
_EMBED = Operation(
    "Embed",
    "Embed texts",
    schemas.EmbeddingsReply,
    schemas.EmbeddingsRequest,
    "OpenAI's clients work with this route. Token ids are refused: they belong to another tokenizer.",
    {"One text": {"input": _TEXT}, "Texts, in base64": {"input": _TEXTS, "encoding_format": "base64"}},
)
_INFER = Operation(
    _PROTOCOL,
    "Run a model on tensors",
    inference.InferReply,
    inference.InferRequest,
    "Tensors are JSON, or follow the JSON as bytes: then send `application/octet-stream`, the length of the"
    " JSON part in the header `Inference-Header-Content-Length`, and `parameters.binary_data_size` for"
    " `data`. `parameters.binary_data_output` requests an answer in the same form.",
    {
        "Texts": {"inputs": [_TENSOR]},
        "Texts, with a name for the request": {"id": "1", "inputs": [_TENSOR]},
    },
    tensors=True,
)
_MODEL = Operation(_PROTOCOL, "A model's inputs and outputs", inference.ModelMetadata)
_MODEL_READY = Operation(_PROTOCOL, "Whether a model is loaded", inference.ModelReady)

_SQL_TYPES = {  # by engine and number of arguments; the reply follows
    "snowflake": (sql.SnowflakeTexts, sql.SnowflakeTextsAndLabels, sql.SnowflakeReply),
    "bigquery": (sql.BigQueryTexts, sql.BigQueryTextsAndLabels, sql.BigQueryReply),
    "redshift": (sql.RedshiftTexts, sql.RedshiftTextsAndLabels, sql.RedshiftReply),
}
_SQL_SUMMARIES = {
    "topic": "The label of each text",
    "topic_score": "The probability of a label for each text",
    "is_topic": "Whether each text has a label",
    "embedding": "The embedding of each text",
}
LABELLED = ("topic_score", "is_topic")
"""Functions with a second argument."""


def _sql_operation(path: str) -> Operation:
    *_, engine, function = path.split("/")
    texts, labelled, reply = _SQL_TYPES[engine]
    summary = f"{_SQL_SUMMARIES[function]}, for {engine}"
    request = labelled if function in LABELLED else texts
    return Operation("SQL", summary, reply, request, examples={"A batch": _sql_example(engine, function)})


def _sql_example(engine: str, function: str) -> dict[str, Any]:
    """An example with nulls for labels, which differ between models."""
    rows = [[text, None] if function in LABELLED else [text] for text in [*_TEXTS, None]]
    if engine == "snowflake":
        return {"data": [[number, *row] for number, row in enumerate(rows)]}
    return {"calls" if engine == "bigquery" else "arguments": rows}


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/v1/predict"): _PREDICT,
    ("POST", "/v1/embeddings"): _EMBED,
    ("GET", "/v1/models"): Operation("Models", "List the models", schemas.ModelList),
    ("GET", "/v1/models/{model}"): Operation("Models", "Describe one model", schemas.ModelCard),
    ("GET", "/v2"): Operation(_PROTOCOL, "The server and its extensions", inference.ServerMetadata),
    ("GET", "/v2/health/live"): Operation(_PROTOCOL, "Whether the server is up", inference.ServerLive),
    ("GET", "/v2/health/ready"): Operation(_PROTOCOL, "Whether every model is loaded", inference.ServerReady),
    ("GET", "/v2/models/{model}"): _MODEL,
    ("GET", "/v2/models/{model}/ready"): _MODEL_READY,
    ("POST", "/v2/models/{model}/infer"): _INFER,
    ("GET", "/v2/models/{model}/versions/{version}"): _MODEL,
    ("GET", "/v2/models/{model}/versions/{version}/ready"): _MODEL_READY,
    ("POST", "/v2/models/{model}/versions/{version}/infer"): _INFER,
    **{("POST", path): _sql_operation(path) for path in SQL_PATHS},
    ("GET", "/healthz"): Operation("Health", "Whether every model is loaded", schemas.Health),
}

_JOBS = "Jobs"
JOB_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/v1/jobs"): Operation(
        _JOBS,
        "Submit texts to be classified later",
        JobReply,
        JobRequest,
        "Send `texts` or `source`, not both. A repeated request or `Idempotency-Key` returns the first job.",
        {
            "Texts": {"texts": _TEXTS},
            "Texts, and a topic to notify": {"texts": _TEXTS, "push": {"sns": True}},
        },
        status=202,
    ),
    ("GET", "/v1/jobs/{job}"): Operation(_JOBS, "The state of a job, and its answers", JobReply),
    ("GET", "/v1/jobs/{job}/answers/{part}"): Operation(
        _JOBS,
        "A page of a job's answers",
        JobReply,
        description="`next` of the previous page is the link to this page.",
    ),
    ("DELETE", "/v1/jobs/{job}"): Operation(_JOBS, "Cancel a job", JobReply),
}
"""Routes of deployments that have jobs."""

FEEDBACK_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/v1/feedback"): Operation(
        "Feedback",
        "Send the right labels of answers",
        feedback.FeedbackReply,
        feedback.FeedbackRequest,
        "Each item has its own result. A label that is sent twice is stored once.",
        {"One label": {"feedback": [{"id": "an answer's id", "label": "sci.space"}]}},
    ),
    ("DELETE", "/v1/feedback/{id}"): Operation(
        "Feedback", "Remove the label of an answer", feedback.FeedbackRemoved
    ),
}
"""Routes of deployments that have feedback."""
