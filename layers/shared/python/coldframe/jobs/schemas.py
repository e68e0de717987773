"""Replies of the routes of jobs, from which OpenAPI is generated."""

from msgspec import UNSET, Raw, Struct, UnsetType

from coldframe.jobs.states import State


class PartReply(Struct, omit_defaults=True):
    """Answers to a part of a job's texts: here as `predictions`, or as JSON at `url`, for an hour."""

    part: int
    texts: int
    version: str
    url: str = ""
    predictions: Raw | UnsetType = UNSET


class JobReply(Struct, omit_defaults=True):
    """A job. Times are seconds since 1970.

    parts: number of parts that the texts are divided into; absent before the division. done: answered parts.
    reason: why the job failed. predictions: answers to all texts, in the form of `POST /v1/predict`, when
    they are few. results: answers by part, when they are many. next: path of the next page of results, if
    any.
    """

    id: str
    state: State
    created: int
    expires: int
    done: int
    parts: int | UnsetType = UNSET
    reason: str = ""
    model: str = ""
    version: str = ""
    predictions: Raw | UnsetType = UNSET
    results: list[PartReply] | UnsetType = UNSET
    next: str = ""
