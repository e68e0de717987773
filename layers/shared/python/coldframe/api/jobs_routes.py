"""Routes of jobs: `POST /v1/jobs`, `GET /v1/jobs/{job}` and its answers, `DELETE /v1/jobs/{job}`."""

import re
import secrets
import time
from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from msgspec import Raw, UnsetType

from coldframe.api.catalogue import find_model
from coldframe.api.messages import Reply, Request, decode_json, json_reply, read_body
from coldframe.config import Settings
from coldframe.errors import Invalid, NotFound, NotReady
from coldframe.jobs.finishing import end, end_if_answered
from coldframe.jobs.object_file import Pin
from coldframe.jobs.ports import BadSource, Objects, Queue, Store, Unavailable
from coldframe.jobs.records import (
    MAX_PARTS,
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
    SplitPlace,
    digest_of,
    divided,
    job_id,
    texts_key,
)
from coldframe.jobs.schemas import JobReply, PartReply
from coldframe.jobs.states import Event, State
from coldframe.pipeline.models import Models
from coldframe.timing import Clock

_DECODER = msgspec.json.Decoder(JobRequest)
_EXAMPLE = '{"texts": ["…"]}'
_TOKEN = re.compile(r"[\x21-\x7e]{1,255}")
_ID = re.compile(r"[a-z2-7]{26}")
_NUMBER = re.compile(r"[0-9]{1,5}")
_PAGE_SHARE = 0.6  # of the largest answer: a page ends with the part that exceeds it
_URL_BYTES = 2_500  # a presigned address with a session token
_MAX_SOURCE_BYTES = MAX_PARTS * PART_BYTES
_NEEDED = ("jobs_table", "jobs_queue", "jobs_control_queue", "jobs_bucket")
_NOT_SET_UP = (
    "There are no jobs here: COLDFRAME_JOBS_TABLE, COLDFRAME_JOBS_QUEUE, COLDFRAME_JOBS_CONTROL_QUEUE or"
    " COLDFRAME_JOBS_BUCKET is empty. Deploy the template with the parameter Jobs=on, or use"
    " POST /v1/predict."
)


def open_jobs_routes(models: Models, settings: Settings) -> "JobsRoutes":
    """The routes on AWS's services. Raises NotFound where the settings name no services."""
    if not all(getattr(settings, name) for name in _NEEDED):
        raise NotFound(_NOT_SET_UP)
    from coldframe.jobs.services import open_services

    services = open_services(settings)
    return JobsRoutes(models, settings, services.store, services.objects, services.queue, services.control)


class JobsRoutes:
    """Handlers of the routes. Safe for threads. now: seconds since 1970. A job is visible to its owner
    alone.
    """

    def __init__(
        self,
        models: Models,
        settings: Settings,
        store: Store,
        objects: Objects,
        queue: Queue,
        control: Queue,
        now: Clock = time.time,
    ) -> None:
        self._models = models
        self._settings = settings
        self._store = store
        self._objects = objects
        self._queue = queue
        self._control = control
        self._now = now

    def create(self, request: Request) -> Reply:
        """202 and the job. A repeated request or Idempotency-Key returns the first job."""
        body = decode_json(read_body(request, self._settings), _DECODER, _EXAMPLE)
        token = request.headers.get("idempotency-key", "")
        try:
            job = self._create(body, token, request)
        except Unavailable as exc:
            raise _not_ready(exc) from exc
        reply = json_reply(_view(job), {"location": f"/v1/jobs/{job.id}"}, {"job": job.id})
        return msgspec.structs.replace(reply, status=HTTPStatus.ACCEPTED)

    def status(self, request: Request) -> Reply:
        """The job, with the first page of its answers once it is done."""
        return self._page(request, "0")

    def answers(self, request: Request) -> Reply:
        """The job, with a page of its answers that begins at a part."""
        return self._page(request, request.params["part"])

    def cancel(self, request: Request) -> Reply:
        """The job, cancelled unless it had ended before."""
        try:
            job = end(self._find(request), Event.CANCEL, self._store, self._control)
        except Unavailable as exc:
            raise _not_ready(exc) from exc
        return json_reply(_view(job), log={"job": job.id})

    def _page(self, request: Request, first: str) -> Reply:
        if not _NUMBER.fullmatch(first):
            raise _unknown()
        try:
            job = self._find(request)
            reply = self._with_results(job, int(first)) if job.state is State.DONE else _view(job)
        except Unavailable as exc:
            raise _not_ready(exc) from exc
        return json_reply(reply, log={"job": job.id})

    def _find(self, request: Request) -> Job:
        name = request.params["job"]
        job = self._store.get(name) if _ID.fullmatch(name) else None
        if job is None or job.owner != request.principal:
            raise _unknown()
        return job

    # New jobs.

    def _create(self, body: JobRequest, token: str, request: Request) -> Job:
        """The job of a request, with its messages sent. Raises Unavailable, Invalid or NotFound."""
        self._check(body, token)
        options = self._options(body)
        digest = digest_of(options, body.texts or None, body.source or None, body.push or None)
        if token:
            name = job_id(request.principal, "token", token)
            if (job := self._known(name, digest)) is not None:
                return self._sent(job, body)
        pin = self._pin(body.source) if isinstance(body.source, Source) else None
        if not token:
            version = find_model(self._models, options.model).manifest.version
            name = job_id(request.principal, "content", digest, version, pin)
        job = self._store.create(self._job(name, digest, options, pin, body, request))
        if job.digest != digest:
            raise Invalid(_OTHER_REQUEST)
        return self._sent(job, body)

    def _known(self, name: str, digest: str) -> Job | None:
        """The job of an Idempotency-Key, unless it is to start again. Its source need no longer exist."""
        job = self._store.get(name)
        if job is None:
            return None
        if job.digest != digest:
            raise Invalid(_OTHER_REQUEST)
        return job if job.state not in (State.FAILED, State.CANCELLED) else None

    @staticmethod
    def _check(body: JobRequest, token: str) -> None:
        if token and not _TOKEN.fullmatch(token):
            raise Invalid("Idempotency-Key does not have 1 to 255 visible ASCII characters. Send a UUID.")
        if isinstance(body.texts, list) == isinstance(body.source, Source):
            raise Invalid(
                'Expected either "texts" (a list of strings) or "source" (an object in S3). Send one.'
            )
        if isinstance(body.source, Source):
            _check_source(body.source)
        if isinstance(body.push, Push):
            _check_push(body.push)

    def _pin(self, source: Source) -> Pin:
        """The current version of the source. Raises Invalid, Unavailable."""
        try:
            pin = self._objects.pin(source.s3)
        except BadSource as exc:
            raise Invalid(
                f"A job cannot have this source: {exc}. Check its address and who may read it."
            ) from exc
        if pin.size_bytes > _MAX_SOURCE_BYTES:
            raise Invalid(
                f"The source has {pin.size_bytes} bytes, expected at most {_MAX_SOURCE_BYTES}."
                " Divide it, or classify it with coldframe offline."
            )
        return pin

    def _job(
        self, name: str, digest: str, options: Options, pin: Pin | None, body: JobRequest, request: Request
    ) -> Job:
        now_s = self._now()
        return Job(
            id=name,
            generation=secrets.token_hex(8),
            digest=digest,
            state=State.QUEUED,
            options=options,
            created_s=now_s,
            expires_s=now_s + self._settings.jobs_ttl_s,
            owner=request.principal,
            source=body.source or None,
            pin=pin,
            push=body.push or None,
            traceparent=request.trace.traceparent if request.trace is not None else "",
        )

    def _options(self, body: JobRequest) -> Options:
        """Options with all names resolved, since another deployment may have other defaults."""
        options = body.options()
        predictor = find_model(self._models, options.model) if options.model else self._models.default
        manifest = predictor.manifest
        heads = options.heads or (manifest.default_head,)
        predictor.check_heads(heads)
        return msgspec.structs.replace(options, model=manifest.name, heads=heads)

    def _sent(self, job: Job, body: JobRequest) -> Job:
        """The job with its messages sent. A repeated request sends the messages of an interrupted one
        again.
        """
        if job.state.has_ended or job.parts is not None or job.split is not None:
            return job
        if isinstance(body.texts, UnsetType):
            self._control.send([Split(job.id, job.generation)])
            self._store.begin_split(job, SplitPlace())
            return job
        parts = self._parts(job, body.texts)
        self._queue.send(parts)
        # By now all parts may be answered.
        return end_if_answered(self._store.set_parts(job, len(parts)) or job, self._store, self._control)

    def _parts(self, job: Job, texts: Sequence[str]) -> list[Body]:
        parts: list[Body] = []
        first = 0
        for number, of_part in enumerate(divided(list(texts))):
            content = msgspec.json.encode(of_part)
            key = ""
            if len(content) > PART_BYTES:
                key = texts_key(job, number)
                self._objects.put(key, content)
            parts.append(Part(job.id, job.generation, number, first, [] if key else of_part, key))
            first += len(of_part)
        return parts

    # Answers.

    def _with_results(self, job: Job, first: int) -> JobReply:
        """A page of answers: at least one part, and no more than an answer of a function may carry."""
        view, page = _view(job), self._results(job, first)
        if not page:
            return view
        view.version = page[0].version if len({result.version for result in page}) == 1 else ""
        last = page[-1].part + 1
        if first == 0 and last == job.parts and not any(result.key for result in page):
            view.predictions = Raw(b"[" + b",".join(result.inline[1:-1] for result in page) + b"]")
            return view
        view.results = [self._part_reply(result) for result in page]
        if last < (job.parts or 0):
            view.next = f"/v1/jobs/{job.id}/answers/{last}"
        return view

    def _results(self, job: Job, first: int) -> list[Result]:
        """Results of a page. At most one result is read that is not returned."""
        left_bytes = _PAGE_SHARE * self._settings.max_answer_bytes
        page: list[Result] = []
        for result in self._store.results(job, first):
            page.append(result)
            left_bytes -= _URL_BYTES if result.key else Reply(200, result.inline, {}).carried_bytes()
            if left_bytes <= 0:
                break
        return page

    def _part_reply(self, result: Result) -> PartReply:
        reply = PartReply(result.part, result.texts, result.version)
        if result.key:
            reply.url = self._objects.url(result.key)
        else:
            reply.predictions = Raw(result.inline)
        return reply


_OTHER_REQUEST = "This Idempotency-Key was sent with another request. Send a new one."


def _view(job: Job) -> JobReply:
    view = JobReply(job.id, job.state, int(job.created_s), int(job.expires_s), len(job.done))
    view.reason, view.model = job.reason, job.options.model
    if job.parts is not None:
        view.parts = job.parts
    return view


def _check_source(source: Source) -> None:
    if source.format == "parquet":
        from coldframe.jobs.parquet import NO_PYARROW, can_read_parquet

        if not can_read_parquet():
            raise Invalid(NO_PYARROW)


def _check_push(push: Push) -> None:
    """The worker checks whether the deployment allows the host, since it calls the host."""
    if not push.webhook and not push.sns:
        raise Invalid('"push" has no receiver. Give it "webhook" or "sns".')
    if push.webhook and not re.fullmatch(r"(?i:https?)://[!-~]+", push.webhook):
        raise Invalid('"webhook" is not an address. Send one that begins with https:// and has no space.')


def _unknown() -> NotFound:
    return NotFound("There is no such job, or it has expired. Start one by POST /v1/jobs.")


def _not_ready(exc: Unavailable) -> NotReady:
    return NotReady(
        f"A service that jobs need does not answer ({exc}). Repeat the request: it refers to the same job."
    )
