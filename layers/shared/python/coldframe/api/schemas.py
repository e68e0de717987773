"""Request and reply types: the HTTP contract, from which OpenAPI is generated."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from coldframe.api.contract import DEFAULT_TOP_K, MAX_BUDGET_MS, MAX_HEADS, MAX_TOP_K, MIN_BUDGET_MS
from coldframe.model.bundle import Figures

Start = Literal["cold", "warm"]
By = Literal["estimator", "ensemble"]


class PredictRequest(Struct, forbid_unknown_fields=True):
    """What `POST /v1/predict` reads. Exactly one of `text` and `texts`."""

    model: Annotated[str, Meta(description="The model that answers, by name.")] | UnsetType = UNSET
    text: Annotated[str, Meta(description="One text to classify.")] | UnsetType = UNSET
    texts: Annotated[list[str], Meta(min_length=1, description="Texts to classify.")] | UnsetType = UNSET
    heads: (
        Annotated[list[str], Meta(min_length=1, max_length=MAX_HEADS, description="Heads that answer.")]
        | UnsetType
    ) = UNSET
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K, description="Labels to return, best first.")] = (
        DEFAULT_TOP_K
    )
    scores: Annotated[bool, Meta(description="Return the probability of every label.")] = False
    cache: Annotated[bool, Meta(description="false: neither read nor write the prediction cache.")] = True
    budget_ms: (
        Annotated[
            int,
            Meta(
                ge=MIN_BUDGET_MS,
                le=MAX_BUDGET_MS,
                description="Time to answer in. `auto` answers without the encoder rather than later.",
            ),
        ]
        | UnsetType
    ) = UNSET
    min_probability: (
        Annotated[
            float,
            Meta(ge=0, le=1, description="Abstain below it; default: the model's own."),
        ]
        | UnsetType
    ) = UNSET


class Score(Struct):
    """A label and its probability."""

    label: str
    probability: float


class HeadAnswer(Struct, omit_defaults=True):
    """What one head says of one text.

    label: null where the head abstains, because the probability of its best label is too low.
    out_of_distribution: share of the rows of validation that look more usual to the model than this text.
    by: who gave the answer of the head `auto`. rushed: the estimator was not sure, but the time was short.
    """

    label: str | None
    probability: float
    top: list[Score]
    out_of_distribution: float
    abstained: bool = False
    by: By | UnsetType = UNSET
    rushed: bool = False
    scores: dict[str, float] | UnsetType = UNSET


class TextAnswer(Struct):
    """What all requested heads say of the text at `index` of the request."""

    index: int
    heads: dict[str, HeadAnswer]


class CacheUsage(Struct, omit_defaults=True):
    """Where predictions (unique texts × heads) came from, and what went wrong, if anything did."""

    l1: Annotated[int, Meta(description="From the environment's own memory.")]
    l2: Annotated[int, Meta(description="From the shared table.")]
    embedding: Annotated[int, Meta(description="Computed by a head from a cached embedding.")]
    miss: Annotated[int, Meta(description="Computed from the text.")]
    skipped: Annotated[
        int, Meta(description="Not looked up in the table: computing was cheaper, or it fails.")
    ] = 0
    expired: Annotated[int, Meta(description="Stored values past their time, taken for misses.")] = 0
    corrupt: Annotated[
        int, Meta(description="Stored values that are not ours or not whole, taken for misses.")
    ] = 0
    errors: Annotated[int, Meta(description="Calls to the table or the bucket that failed.")] = 0
    breaker: Annotated[str, Meta(description="closed, open or half-open: whether the table is called.")] = (
        "closed"
    )


class Usage(Struct):
    """What the answer cost. Tokens are those the encoder saw in this request.

    estimated: texts that the estimator answered alone.
    """

    texts: int
    unique: int
    estimated: int
    tokens: int
    padded_tokens: int
    windows: int
    batches: int
    cache: CacheUsage


class PredictReply(Struct):
    """What `POST /v1/predict` answers."""

    model: str
    version: str
    start: Start
    predictions: list[TextAnswer]
    usage: Usage


class HeadCard(Struct):
    """What a head reached on the test split, by the form of its texts."""

    accuracy: dict[str, float]


class ModelCard(Struct, omit_defaults=True):
    """One entry of OpenAI's model list: a model, one of its heads, or an encoder.

    encoder: name of the one that a model was trained on. is_default: answers requests that name no model.
    """

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    version: str
    encoder: str | UnsetType = UNSET
    is_default: bool = False
    labels: list[str] | UnsetType = UNSET
    default_head: str | UnsetType = UNSET
    heads: dict[str, HeadCard] | UnsetType = UNSET
    figures: Figures | UnsetType = UNSET
    dimension: int | UnsetType = UNSET
    max_tokens: int | UnsetType = UNSET


class ModelList(Struct):
    """What `GET /v1/models` answers."""

    object: Literal["list"]
    data: list[ModelCard]


class EmbeddingsRequest(Struct, forbid_unknown_fields=True):
    """What `POST /v1/embeddings` reads, as OpenAI's API has it."""

    input: Annotated[str, Meta(description="One text.")] | Annotated[list[str], Meta(min_length=1)]
    model: (
        Annotated[
            str,
            Meta(
                max_length=256,
                description="An encoder, or a model on it. Any name stands for the only one that is served.",
            ),
        ]
        | None
    ) = None
    encoding_format: (
        Annotated[Literal["float", "base64"], Meta(description="base64: of little-endian float32.")] | None
    ) = None
    dimensions: Annotated[int, Meta(ge=1, description="Only the encoder's own.")] | None = None
    user: Annotated[str, Meta(description="Ignored.")] | None = None


class EmbeddingItem(Struct):
    """The embedding of the text at `index` of the request."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(Struct):
    """Tokens of all texts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(Struct):
    """What `POST /v1/embeddings` answers."""

    object: Literal["list"]
    data: list[EmbeddingItem]
    model: str
    usage: EmbeddingsUsage


class Health(Struct):
    """What `GET /healthz` answers once all models are loaded.

    version: of the default model. models: version of each.
    """

    status: Literal["ok"]
    version: str
    models: dict[str, str]


class Problem(Struct, omit_defaults=True):
    """An error, as RFC 9457 `application/problem+json`."""

    type: str
    title: str
    status: int
    detail: str
    error: Annotated[str, Meta(description="`detail` again, for clients of /v2.")] | UnsetType = UNSET
    error_message: (
        Annotated[str, Meta(max_length=1000, description="`detail` again, for BigQuery.")] | UnsetType
    ) = field(default=UNSET, name="errorMessage")
