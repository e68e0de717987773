"""Messages of `POST /v1/feedback`."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

MAX_ITEMS = 100

Outcome = Literal["stored", "unknown", "expired", "unknown-label", "conflict", "other-text", "text-too-large"]


class FeedbackItem(Struct, forbid_unknown_fields=True):
    """The right label of an answer."""

    id: Annotated[str, Meta(description="The answer's `id`.")]
    label: Annotated[str, Meta(description="The label that is right for its text.")]
    text: (
        Annotated[str, Meta(description="The answer's text, to be stored where the deployment does so.")]
        | UnsetType
    ) = UNSET


class FeedbackRequest(Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/feedback`."""

    feedback: Annotated[
        list[FeedbackItem],
        Meta(min_length=1, description=f"Right labels, at most {MAX_ITEMS}."),
    ]


class FeedbackResult(Struct, omit_defaults=True):
    """Outcome for an item. detail: why its label was not stored, and what to do."""

    outcome: Outcome
    detail: str = ""


class FeedbackReply(Struct):
    """A result for each item, in the order of the request."""

    results: list[FeedbackResult]


class FeedbackRemoved(Struct):
    """Answer of `DELETE /v1/feedback/{id}`: neither label nor text of this answer is stored any longer."""

    removed: bool
