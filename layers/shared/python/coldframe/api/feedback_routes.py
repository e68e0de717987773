"""Routes of feedback: `POST /v1/feedback` and `DELETE /v1/feedback/{id}`."""

import hmac
import time
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from coldframe.api.messages import Reply, Request, decode_json, json_reply, read_body
from coldframe.config import Settings
from coldframe.errors import Invalid, NotFound, NotReady, TooLarge
from coldframe.experiments.stores import StoreFails
from coldframe.feedback.ids import Answer, Signer
from coldframe.feedback.schemas import (
    MAX_ITEMS,
    FeedbackItem,
    FeedbackRemoved,
    FeedbackReply,
    FeedbackRequest,
    FeedbackResult,
)
from coldframe.feedback.table import FeedbackTable, TableFails
from coldframe.feedback.texts import MAX_TEXT_BYTES, TextSealer
from coldframe.model.tokenizer import normalise
from coldframe.pipeline.models import Models
from coldframe.timing import Clock

if TYPE_CHECKING:
    from coldframe.experiments.labels import LabelCounter

_DECODER = msgspec.json.Decoder(FeedbackRequest)
_EXAMPLE = '{"feedback": [{"id": "…", "label": "…"}]}'
_DAY_S = 86_400
_RETRY = {"retry-after": "5"}
_STORE_S = 1.0
_NOT_SET_UP = (
    "There is no feedback here: COLDFRAME_FEEDBACK_KEY or COLDFRAME_FEEDBACK_TABLE is empty. Set both."
)
_UNKNOWN = "No answer to this caller has this id. Send the id as POST /v1/predict returned it."
_CONFLICT = "This answer has another label. Send DELETE /v1/feedback/{id} first."
_OTHER_TEXT = "The id does not belong to this text. Send the text of POST /v1/predict, or none."
_TEXT_TOO_LARGE = f"The text has more than {MAX_TEXT_BYTES:,} bytes. Send the label without it."
_NO_TEXTS = (
    "Texts are not stored here: COLDFRAME_FEEDBACK_TEXT_KEY is empty. Send each label without its `text`."
)
_OTHER_LABEL = "The model does not have this label. GET /v1/models lists the labels."


def open_feedback_routes(models: Models, settings: Settings) -> "FeedbackRoutes":
    """The routes on DynamoDB. Raises NotFound where the settings name no key or no table."""
    if not settings.feedback_key or not settings.feedback_table:
        raise NotFound(_NOT_SET_UP)
    from coldframe.experiments.labels import LabelCounter
    from coldframe.experiments.table import open_store
    from coldframe.jobs.services import Clients

    table = FeedbackTable(settings.feedback_table, Clients().of("dynamodb"), time.time)
    counter = LabelCounter(open_store(settings.experiments, _STORE_S)) if settings.experiments else None
    return FeedbackRoutes(models, settings, Signer(settings.feedback_key), table, counter=counter)


class FeedbackRoutes:
    """Handlers of the routes. Safe for threads. now: seconds since 1970. An id is known to its
    caller alone.
    """

    def __init__(
        self,
        models: Models,
        settings: Settings,
        signer: Signer,
        table: FeedbackTable,
        now: Clock = time.time,
        counter: "LabelCounter | None" = None,
    ) -> None:
        """counter: of an experiment's labels."""
        self._models = models
        self._settings = settings
        self._signer = signer
        self._table = table
        self._now = now
        key = settings.feedback_text_key
        self._sealer = TextSealer(key) if key else None
        self._counter = counter

    def add(self, request: Request) -> Reply:
        """A result for each label. A repeated request has the same results."""
        body = decode_json(read_body(request, self._settings), _DECODER, _EXAMPLE)
        if len(body.feedback) > MAX_ITEMS:
            raise TooLarge(
                f"Found {len(body.feedback)} labels, expected at most {MAX_ITEMS}. Send them in parts."
            )
        if self._sealer is None and any(isinstance(item.text, str) for item in body.feedback):
            raise Invalid(_NO_TEXTS)
        try:
            results = [self._add(item, request.principal) for item in body.feedback]
        except (TableFails, StoreFails) as exc:
            raise _not_ready(exc) from exc
        return json_reply(FeedbackReply(results), log={"feedback": _counts(results)})

    def remove(self, request: Request) -> Reply:
        """The label of an answer and its text are gone, whether or not there were any."""
        answer = self._signer.read(request.params["id"], request.principal)
        if answer is None:
            raise NotFound(_UNKNOWN)
        try:
            self._table.remove(answer)
            if self._counter is not None:
                self._counter.remove(answer)
        except (TableFails, StoreFails) as exc:
            raise _not_ready(exc) from exc
        return json_reply(FeedbackRemoved(True))

    def _add(self, item: FeedbackItem, owner: str) -> FeedbackResult:
        answer = self._signer.read(item.id, owner)
        if answer is None:
            return FeedbackResult("unknown", _UNKNOWN)
        expires_s = answer.moment_s + self._settings.feedback_days * _DAY_S
        if expires_s <= self._now():
            days = self._settings.feedback_days
            return FeedbackResult("expired", f"The answer is older than {days} days. Label a newer one.")
        if item.label not in self._labels(answer):
            return FeedbackResult("unknown-label", _OTHER_LABEL)
        if self._sealer is None or isinstance(item.text, UnsetType):
            sealed = None
        elif not self._is_text_of(answer, item.text):
            return FeedbackResult("other-text", _OTHER_TEXT)
        elif len(item.text.encode()) > MAX_TEXT_BYTES:
            return FeedbackResult("text-too-large", _TEXT_TOO_LARGE)
        else:
            sealed = self._sealer.seal(item.text, answer)
        if not self._table.add(answer, item.label, expires_s, sealed):
            return FeedbackResult("conflict", _CONFLICT)
        if self._counter is not None:
            self._counter.add(answer, item.label)
        return FeedbackResult("stored")

    def _is_text_of(self, answer: Answer, text: str) -> bool:
        """Whether the answer was given for this text, up to white space."""
        try:
            digest = self._signer.digest(normalise(text))
        except Invalid:
            return False
        return hmac.compare_digest(digest, answer.text_digest)

    def _labels(self, answer: Answer) -> set[str]:
        """Labels of the answer's model; of all models, if that version is no longer served."""
        manifests = [predictor.manifest for predictor in self._models.all()]
        same = [manifest for manifest in manifests if manifest.version == answer.model]
        labels = {label for manifest in same or manifests for label in manifest.labels}
        return labels if same else labels | {answer.label}


def _counts(results: list[FeedbackResult]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for result in results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
    return counts


def _not_ready(exc: TableFails | StoreFails) -> NotReady:
    return NotReady(
        f"The table of feedback does not answer ({exc}). Send the request again: no label is stored twice.",
        _RETRY,
    )
