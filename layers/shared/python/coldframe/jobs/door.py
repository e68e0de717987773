"""`POST /v1/jobs`, `GET /v1/jobs/{job}`, `DELETE /v1/jobs/{job}`: work that can wait."""

import re
import time
from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from msgspec import Raw, UnsetType

from coldframe.api.catalogue import find_model
from coldframe.api.messages import Reply, Request, decode_json, json_reply, read_body
from coldframe.config import Settings
from coldframe.errors import Invalid, NotFound, NotReady
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.ending import settle
from coldframe.jobs.ports import Objects, Queue, Store, Unavailable
from coldframe.jobs.records import (
    PART_BYTES,
    Body,
    Job,
    JobRequest,
    Options,
    Part,
    Push,
    Result,
    Source,
    Split,
    digest_of,
    divided,
    job_id,
)
from coldframe.jobs.schemas import JobReply, PartReply
from coldframe.jobs.states import Event, State
from coldframe.pipeline.models import Models
from coldframe.timing import Clock

_DECODER = msgspec.json.Decoder(JobRequest)
_EXAMPLE = '{"texts": ["…"]}'
_TOKEN = re.compile(r"[\x21-\x7e]{1,255}")
_INLINE_BYTES = 4 * 1024 * 1024
_LONGEST_WAIT_S = RetryPolicy().age_s + 3600
_NOT_SET_UP = (
    "There are no jobs here: COLDFRAME_JOBS_TABLE, COLDFRAME_JOBS_QUEUE and COLDFRAME_JOBS_BUCKET are empty."
    " Deploy the template with the parameter Jobs=on, or ask POST /v1/predict."
)


def open_door(models: Models, settings: Settings) -> "JobsDoor":
    """The door on AWS's services. Raises NotFound where the settings name none."""
    if not (settings.jobs_table and settings.jobs_queue and settings.jobs_bucket):
        raise NotFound(_NOT_SET_UP)
    from coldframe.jobs.services import open_services

    services = open_services(settings)
    return JobsDoor(models, settings, services.store, services.objects, services.queue)


class JobsDoor:
    """The routes. Safe for threads. now: seconds since 1970."""

    def __init__(
        self,
        models: Models,
        settings: Settings,
        store: Store,
        objects: Objects,
        queue: Queue,
        now: Clock = time.time,
    ) -> None:
        self._models = models
        self._settings = settings
        self._store = store
        self._objects = objects
        self._queue = queue
        self._now = now

    def create(self, request: Request) -> Reply:
        """202 and the job. The same request, or the same Idempotency-Key, is the same job."""
        asked = decode_json(read_body(request, self._settings), _DECODER, _EXAMPLE)
        job = self._job(asked, request.headers.get("idempotency-key", ""))
        try:
            found = self._store.create(job)
            if found.digest != job.digest:
                raise Invalid("This Idempotency-Key was sent with another request. Send a new one.")
            if found.parts is None and not found.state.has_ended:
                found = self._start(found, asked)
        except Unavailable as exc:
            raise _not_ready(exc) from exc
        reply = json_reply(_view(found), {"location": f"/v1/jobs/{found.id}"}, {"job": found.id})
        return msgspec.structs.replace(reply, status=HTTPStatus.ACCEPTED)

    def status(self, request: Request) -> Reply:
        """The job, with its answers once it is done."""
        try:
            job = self._find(request)
            if not job.state.has_ended and self._now() - job.created_s > _LONGEST_WAIT_S:
                job = self._store.apply(job.id, Event.FAIL, "nothing was heard of it for hours") or job
            results = self._store.results(job.id) if job.state is State.DONE else []
        except Unavailable as exc:
            raise _not_ready(exc) from exc
        return json_reply(self._with_results(job, results), log={"job": job.id})

    def cancel(self, request: Request) -> Reply:
        """The job, cancelled unless it had ended before."""
        try:
            found = self._find(request)
            job = settle(self._store.apply(found.id, Event.CANCEL) or found, self._store, self._queue)
        except Unavailable as exc:
            raise _not_ready(exc) from exc
        return json_reply(_view(job), log={"job": job.id})

    def _find(self, request: Request) -> Job:
        job = self._store.get(request.params["job"])
        if job is None:
            raise _unknown()
        return job

    def _job(self, asked: JobRequest, token: str) -> Job:
        """A new job of what was asked. Raises Invalid and NotFound for what can never be done."""
        if token and not _TOKEN.fullmatch(token):
            raise Invalid("Idempotency-Key has other than 1 to 255 visible ASCII characters. Send a UUID.")
        texts, source, push = asked.texts, asked.source, asked.push
        if isinstance(texts, list) == isinstance(source, Source):
            raise Invalid('Expected either "texts" (a list of strings) or "source" (an object in S3).')
        if isinstance(source, Source):
            _check_source(source)
        if isinstance(push, Push):
            _check_push(push)
        digest, now_s = digest_of(asked), self._now()
        return Job(
            id=job_id(digest, token),
            digest=digest,
            state=State.QUEUED,
            options=self._options(asked),
            created_s=now_s,
            expires_s=now_s + self._settings.jobs_ttl_s,
            source=None if isinstance(source, UnsetType) else source,
            push=None if isinstance(push, UnsetType) else push,
        )

    def _options(self, asked: JobRequest) -> Options:
        """With names in place of defaults, which another deployment may have others of."""
        options = asked.options()
        predictor = find_model(self._models, options.model) if options.model else self._models.default
        manifest = predictor.manifest
        heads = options.heads or (manifest.default_head,)
        predictor.check_heads(heads)
        return msgspec.structs.replace(options, model=manifest.name, heads=heads)

    def _start(self, job: Job, asked: JobRequest) -> Job:
        """Sends the messages. Who repeats the request after a failure sends them once more."""
        if isinstance(asked.texts, UnsetType):
            self._queue.send([Split(job.id)])
            return job
        parts = self._parts(job, asked.texts)
        self._queue.send(parts)
        # By now they may all be answered.
        return settle(self._store.set_parts(job.id, len(parts)) or job, self._store, self._queue)

    def _parts(self, job: Job, texts: Sequence[str]) -> list[Body]:
        parts: list[Body] = []
        first = 0
        for number, of_part in enumerate(divided(list(texts))):
            content = msgspec.json.encode(of_part)
            key = ""
            if len(content) > PART_BYTES:
                key = f"jobs/{job.id}/texts/{number:05d}.json"
                self._objects.put(key, content)
            parts.append(Part(job.id, number, first, [] if key else of_part, key))
            first += len(of_part)
        return parts

    def _with_results(self, job: Job, results: Sequence[Result]) -> JobReply:
        view = _view(job)
        if not results:
            return view
        view.version = results[0].version if len({result.version for result in results}) == 1 else ""
        if all(not result.key for result in results) and _bytes(results) <= _INLINE_BYTES:
            rows = b",".join(result.inline[1:-1] for result in results)
            view.predictions = Raw(b"[" + rows + b"]")
        else:
            view.results = [self._part_reply(result) for result in results]
        return view

    def _part_reply(self, result: Result) -> PartReply:
        reply = PartReply(result.part, result.texts, result.version)
        if result.key:
            reply.url = self._objects.url(result.key)
        else:
            reply.predictions = Raw(result.inline)
        return reply


def _view(job: Job) -> JobReply:
    view = JobReply(job.id, job.state, int(job.created_s), int(job.expires_s), job.done)
    view.reason, view.model = job.reason, job.options.model
    if job.parts is not None:
        view.parts = job.parts
    return view


def _bytes(results: Sequence[Result]) -> int:
    return sum(len(result.inline) for result in results)


def _check_source(source: Source) -> None:
    if source.format == "parquet":
        from coldframe.jobs.parquet import NO_PYARROW, can_read_parquet

        if not can_read_parquet():
            raise Invalid(NO_PYARROW)


def _check_push(push: Push) -> None:
    """Whether the deployment allows the host is for who calls it to say: the worker."""
    if not push.webhook and not push.sns:
        raise Invalid('"push" names nobody. Give it "webhook" or "sns".')
    if push.webhook and not re.fullmatch(r"(?i:https?)://[!-~]+", push.webhook):
        raise Invalid('"webhook" is not an address. Send one that begins with https:// and has no space.')


def _unknown() -> NotFound:
    return NotFound("There is no such job, or it has expired. POST /v1/jobs makes one.")


def _not_ready(exc: Unavailable) -> NotReady:
    return NotReady(
        f"A service that keeps jobs does not answer ({exc}). Send the same request again: it is the same job."
    )
