"""Request and reply types: the HTTP contract, from which OpenAPI is generated."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from coldframe.contract import (
    DEFAULT_TOP_K,
    MAX_BUDGET_MS,
    MAX_HEADS,
    MAX_SUBJECT,
    MAX_TOP_K,
    MIN_BUDGET_MS,
)

Start = Literal["cold", "warm"]
By = Literal["estimator", "ensemble"]
Unexplained = Literal["time", "words", "failed"]


class Figures(Struct, frozen=True):
    """Results of `auto` on the evaluation rows; the report has the details.

    accuracy_interval: its 95 % interval. estimator_share: share of rows that the estimator answered alone.
    baseline_accuracy: of TF-IDF and logistic regression on the same rows.
    """

    rows: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    macro_f1: float
    expected_calibration_error: float
    estimator_share: float
    baseline_accuracy: float


class Objective(Struct, forbid_unknown_fields=True):
    """Bounds for the answers of one request. The cheapest head that keeps all of them answers."""

    accuracy: (
        Annotated[float, Meta(ge=0, le=1, description="Least accuracy on the model's test split.")]
        | UnsetType
    ) = UNSET
    budget_ms: (
        Annotated[
            int,
            Meta(ge=MIN_BUDGET_MS, le=MAX_BUDGET_MS, description="Time to answer in, as `budget_ms`."),
        ]
        | UnsetType
    ) = UNSET
    usd_per_million: (
        Annotated[float, Meta(ge=0, description="Highest price of a million texts like these.")] | UnsetType
    ) = UNSET


class Choice(Struct):
    """The head that was chosen for an objective. expected_ms: for all texts of the request."""

    model: str
    head: str
    accuracy: float
    expected_ms: float
    usd_per_million: float
    because: str


class PredictRequest(Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/predict`. Exactly one of `text` and `texts`."""

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
                description="Time to answer in. `auto` leaves the encoder out if it would take longer.",
            ),
        ]
        | UnsetType
    ) = UNSET
    min_probability: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=1,
                description="The head abstains below this probability. Default: the model's own.",
            ),
        ]
        | UnsetType
    ) = UNSET
    explain: Annotated[bool, Meta(description="Return the words that decided each answer.")] = False
    subject: (
        Annotated[
            str,
            Meta(
                max_length=MAX_SUBJECT,
                description="Who asks, for experiments: one subject is answered by one arm. Never stored.",
            ),
        ]
        | UnsetType
    ) = UNSET
    objective: (
        Annotated[Objective, Meta(description="Bounds that choose the model and head.")] | UnsetType
    ) = UNSET


class Score(Struct):
    """A label and its probability."""

    label: str
    probability: float


class DecidingWord(Struct):
    """A word, or adjacent words of a long text, from character `start` to `end` of the text.

    weight: its part in the log-odds of the best label.
    """

    start: int
    end: int
    weight: float


class Explanation(Struct, omit_defaults=True):
    """Words that speak for the best label, the largest weight first.

    method: `exact` for the estimator's own sums, `left-out` for answers computed again without each word.
    rest: what all else adds to the exact sum.
    """

    method: Literal["exact", "left-out"]
    words: list[DecidingWord]
    rest: float | UnsetType = UNSET


class HeadAnswer(Struct, omit_defaults=True):
    """Answer of one head for one text.

    label: null where the head abstains, because the probability of its best label is too low.
    out_of_distribution: share of the validation rows that are less unusual to the model than this text.
    by: the part that answered for the head `auto`. members: the heads whose mean `ensemble` is. rushed: more
    time would have given another answer. id: names this answer for `POST /v1/feedback`. drawn: chance chose
    the answer to be labelled.
    explanation: only on request; null where there is none, and `unexplained` says why.
    """

    label: str | None
    probability: float
    top: list[Score]
    out_of_distribution: float
    abstained: bool = False
    by: By | UnsetType = UNSET
    members: list[str] | UnsetType = UNSET
    rushed: bool = False
    scores: dict[str, float] | UnsetType = UNSET
    id: str | UnsetType = UNSET
    drawn: bool = False
    explanation: Explanation | UnsetType | None = UNSET
    unexplained: Unexplained | UnsetType = UNSET


class TextAnswer(Struct):
    """Answers of all requested heads for the text at `index` of the request."""

    index: int
    heads: dict[str, HeadAnswer]


CACHE_LEVELS = ("l1", "l2", "embedding", "miss")
"""Fields of `CacheUsage` with the sources of predictions."""


class CacheUsage(Struct, omit_defaults=True):
    """Sources of the predictions (unique texts × heads), and errors of the cache."""

    l1: Annotated[int, Meta(description="From the environment's own memory.")]
    l2: Annotated[int, Meta(description="From the shared table.")]
    embedding: Annotated[int, Meta(description="Computed by a head from a cached embedding.")]
    miss: Annotated[int, Meta(description="Computed from the text.")]
    skipped: Annotated[
        int, Meta(description="Not looked up in the table: computing was cheaper, or the table fails.")
    ] = 0
    expired: Annotated[int, Meta(description="Expired stored values, counted as misses.")] = 0
    corrupt: Annotated[
        int, Meta(description="Stored values that are foreign or damaged, counted as misses.")
    ] = 0
    errors: Annotated[int, Meta(description="Calls to the table or the bucket that failed.")] = 0
    breaker: Annotated[str, Meta(description="closed, open or half-open: whether the table is called.")] = (
        "closed"
    )


class Usage(Struct):
    """Work done for the answer. Only tokens that the encoder read in this request are counted.

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


class ExperimentMark(Struct):
    """The experiment that a request was part of, and the arm that answered it, by their names."""

    name: str
    arm: str


class PredictReply(Struct, omit_defaults=True):
    """Answer of `POST /v1/predict`. experiment: only where the request was part of one."""

    model: str
    version: str
    start: Start
    predictions: list[TextAnswer]
    usage: Usage
    experiment: ExperimentMark | UnsetType = UNSET
    objective: Choice | UnsetType = UNSET


class HeadCard(Struct):
    """Result of a head on the test split, by the form of its texts."""

    accuracy: dict[str, float]


class ModelCard(Struct, omit_defaults=True):
    """One entry of OpenAI's model list: a model, one of its heads, or an encoder.

    encoder: name of the encoder that a model was trained on. is_default: answers requests that name no model.
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
    """Answer of `GET /v1/models`."""

    object: Literal["list"]
    data: list[ModelCard]


class EmbeddingsRequest(Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/embeddings`, as OpenAI's API defines it."""

    input: Annotated[str, Meta(description="One text.")] | Annotated[list[str], Meta(min_length=1)]
    model: (
        Annotated[
            str,
            Meta(
                max_length=256,
                description="An encoder, or a model on it. Any name selects the only encoder.",
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
    """Answer of `POST /v1/embeddings`."""

    object: Literal["list"]
    data: list[EmbeddingItem]
    model: str
    usage: EmbeddingsUsage


class Health(Struct):
    """Answer of `GET /healthz` once all models are loaded.

    version: the default model's. models: version of each model.
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
