"""Routes and statuses without a framework: a request in, a reply out."""

import math
import time
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from coldframe.api.catalogue import find_model, model_card, model_cards
from coldframe.api.messages import (
    Reply,
    Request,
    check_size,
    count_answers,
    deadline_of,
    decode_json,
    json_reply,
    log_record,
    problem_reply,
    read_body,
    work_log,
)
from coldframe.api.routing import Handler, Router
from coldframe.cache.cache import PredictionCache, Unsaved
from coldframe.config import Settings
from coldframe.contract import MAX_EXPLAINED_TEXTS, PREDICT, SCORE_DIGITS, SQL_PATHS
from coldframe.errors import BundleError, Invalid, NotReady, RequestError, TooLarge
from coldframe.model.estimator import sources_of
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.pipeline.answers import Prediction
from coldframe.pipeline.models import Models, SketchLog
from coldframe.pipeline.predictor import Predictor
from coldframe.schemas import (
    Choice,
    HeadAnswer,
    Health,
    ModelList,
    Objective,
    PredictReply,
    PredictRequest,
    Score,
    Start,
    TextAnswer,
)
from coldframe.timing import BLOCKS, Deadline, StageTimes, StartMark, log_line
from coldframe.vectors import Vector, ranked, to_floats

if TYPE_CHECKING:
    from coldframe.api.feedback_routes import FeedbackRoutes
    from coldframe.api.inference_protocol import InferenceProtocol
    from coldframe.api.jobs_routes import JobsRoutes
    from coldframe.api.sql_routes import SqlRoutes
    from coldframe.experiments.keeper import Keeper
    from coldframe.feedback.marks import Marker
    from coldframe.telemetry.telemetry import Telemetry
    from coldframe.telemetry.trace import Trace

__all__ = ["Api", "Reply", "Request"]

_DECODER = msgspec.json.Decoder(PredictRequest)
_TOO_LARGE_HINT = "Leave out `scores`, request fewer `heads` or a smaller `top_k`, or send fewer texts."


class Api:
    """Answers the routes of the contract for one environment.

    Safe for threads. Two threads may build a lazily imported part at once: both parts are whole, and one is
    kept.
    """

    def __init__(
        self,
        models: Models,
        settings: Settings,
        start: StartMark,
        log: Callable[[str], None] = print,
        start_kind: str = "server",
    ) -> None:
        """start_kind: how the environment was initialised, for its metrics."""
        self.models = models
        self._settings = settings
        self._start = start
        self._log = log
        self._created_s = int(time.time())
        # Each has an entry in `operations.OPERATIONS`, from which OpenAPI and the server's routes are made.
        self.routes: dict[tuple[str, str], Handler] = {
            PREDICT: self._predict,
            ("POST", "/v1/embeddings"): self._embeddings,
            ("GET", "/v1/models"): self._models,
            ("GET", "/v1/models/{model}"): self._model,
            ("GET", "/v2"): lambda r: self._protocol.server(r),
            ("GET", "/v2/health/live"): lambda r: self._protocol.live(r),
            ("GET", "/v2/health/ready"): lambda r: self._protocol.ready(r),
            ("GET", "/v2/models/{model}"): lambda r: self._protocol.model(r),
            ("GET", "/v2/models/{model}/ready"): lambda r: self._protocol.model_ready(r),
            ("POST", "/v2/models/{model}/infer"): lambda r: self._protocol.infer(r),
            ("GET", "/v2/models/{model}/versions/{version}"): lambda r: self._protocol.model(r),
            ("GET", "/v2/models/{model}/versions/{version}/ready"): lambda r: self._protocol.model_ready(r),
            ("POST", "/v2/models/{model}/versions/{version}/infer"): lambda r: self._protocol.infer(r),
            ("POST", "/v1/jobs"): lambda r: self._jobs.create(r),
            ("GET", "/v1/jobs/{job}"): lambda r: self._jobs.status(r),
            ("GET", "/v1/jobs/{job}/answers/{part}"): lambda r: self._jobs.answers(r),
            ("DELETE", "/v1/jobs/{job}"): lambda r: self._jobs.cancel(r),
            ("POST", "/v1/feedback"): lambda r: self._feedback.add(r),
            ("DELETE", "/v1/feedback/{id}"): lambda r: self._feedback.remove(r),
            ("GET", "/healthz"): self._health,
            **{("POST", path): lambda r: self._sql.answer(r) for path in SQL_PATHS},
        }
        self._router = Router(self.routes)
        self._start_kind = start_kind
        self._telemetry = _open_telemetry(settings, start_kind)
        self._marker = _open_marker(settings)
        self._experiments = _open_experiments(settings, models, log, start_kind)
        self._sketches = SketchLog(models) if settings.sketches != "off" else None

    @property
    def settings(self) -> Settings:
        """The settings of this environment."""
        return self._settings

    @property
    def _cache(self) -> PredictionCache:
        """One for all models."""
        return self.models.default.cache

    def answers(self, method: str, path: str) -> bool:
        """Whether `answer` has this route. If not, FastAPI may have it."""
        return (method, path) in self._router.hot or self._router.knows(method, path)

    def answer(self, request: Request) -> Reply:
        """The reply to any request. Never raises: an error becomes a problem+json reply."""
        self.log_sketches()
        start = self._start.take()
        started_s = time.perf_counter()
        trace = (
            self._telemetry.trace(request.headers, request.platform_trace)
            if self._telemetry is not None
            else None
        )
        unsaved: Unsaved = {}
        try:
            match = self._router.hot.get((request.method, request.path))
            match = match or self._router.find(request.method, request.path)
            known = msgspec.structs.replace(request, start=start, params=match.params, trace=trace)
            reply = match.handler(known)
            unsaved = reply.unsaved
            check_size(reply, self._settings.max_answer_bytes)
        except RequestError as exc:
            reply = problem_reply(exc, request.path)
        except BundleError as exc:  # a model that could not be loaded, or a head
            reply = problem_reply(NotReady(str(exc)), request.path, exc)
        except Exception as exc:  # a defect of the program: no detail may reach the caller or the log
            defect = RequestError("An internal error occurred. Send the request again.")
            reply = problem_reply(defect, request.path, exc)
        if trace is not None:
            reply.headers.update(trace.reply_headers(request.headers))
        if unsaved:
            reply.log.update(self._save(unsaved, request))
        if self._experiments is not None:
            self._experiments.after_answer(deadline_of(request).remaining_s())
        is_quiet = self._settings.log_level == "off" or (request.is_probe and reply.status == HTTPStatus.OK)
        if not is_quiet:
            self._log(self._line(request, reply, start, started_s, trace))
        return reply

    def log_sketches(self) -> None:
        """Logs a sketch of each model, once a minute. See `coldframe monitor`."""
        if self._sketches is not None:
            for line in self._sketches.lines():
                self._log(line)

    def start_counting(self) -> None:
        """Counts from here on: what was answered before was priming."""
        self._telemetry = _open_telemetry(self._settings, self._start_kind)
        for observer in self.models.observers():
            observer.renew()

    def set_up(self) -> None:
        """Connects the stores ahead of traffic, where no caller waits."""
        self._cache.set_up()
        if self._experiments is not None:
            self._experiments.set_up()

    def close(self) -> None:
        """Writes the counts of experiments that are not yet stored, and logs the last sketches."""
        if self._experiments is not None:
            self._experiments.close()
        if self._sketches is not None:
            for line in self._sketches.last_lines():
                self._log(line)

    def before_snapshot(self) -> None:
        """Closes what does not survive a snapshot: connections, credentials."""
        self._cache.before_snapshot()
        if self._experiments is not None:
            self._experiments.before_snapshot()

    def after_restore(self) -> None:
        """Renews what depends on time and place."""
        self._created_s = int(time.time())
        self._cache.after_restore()
        if self._experiments is not None:
            self._experiments.after_restore()
        self.start_counting()

    def _save(self, unsaved: Unsaved, request: Request) -> dict[str, object]:
        """Writes to the shared cache after the answer is built. Returns fields for the log line."""
        times = StageTimes()
        saved = self._cache.save(unsaved, deadline_of(request).remaining_s())
        if saved is None:
            return {}
        costs = {"values": saved.values, "of": saved.of, "ms": round(times.total_ms(), 3)}
        return {"cache_write": costs | ({"error": saved.failure} if saved.failure else {})}

    def _predict(self, request: Request) -> Reply:
        started_s = time.monotonic() if request.arrived_s is None else request.arrived_s
        content = read_body(request, self._settings)
        body = decode_json(content, _DECODER, '{"text": "…"}')
        texts = self._texts(body)
        choice: Choice | UnsetType = UNSET
        if not isinstance(body.objective, UnsetType):
            choice = self._apply_objective(body, body.objective, texts, deadline_of(request))
        part = self._experiments.choose(request, body) if self._experiments is not None else None
        predictor, heads = self._model_and_heads(body) if part is None else (part.predictor, part.heads)
        budget_s = math.inf if isinstance(body.budget_ms, UnsetType) else body.budget_ms / 1e3
        reading_s = time.monotonic() - started_s  # waiting, unzipping and decoding count as well
        may_rush = self._settings.overload == "rush" and part is None and heads == [AUTO]
        deadline = deadline_of(request, budget_s - reading_s, may_rush, is_budget=budget_s < math.inf)
        if part is None:
            prediction = predictor.predict(texts, heads, body.cache, deadline)
        else:
            prediction = part.predict(texts, body, deadline)
            predictor, heads = part.predictor, part.heads  # the first arm's where the chosen one failed
        answers = text_answers(prediction, predictor, body)
        if part is not None:
            part.observe(texts, prediction, answers, body, deadline)
        manifest = predictor.manifest
        if body.explain:
            from coldframe.pipeline.explaining import explain_answers

            with prediction.times.stage("explain"):
                explain_answers(predictor, texts, answers, prediction.usage, deadline)
        reply = PredictReply(
            model=manifest.name,
            version=manifest.version,
            start=request.start,
            predictions=answers,
            usage=prediction.usage,
            objective=choice,
        )
        if self._marker is not None and request.has_ids:
            trial_of = None if part is None else part.trial
            names = manifest.name, manifest.version
            self._marker.mark(texts, answers, *names, request.principal, trial_of)
        timing = {"server-timing": prediction.times.server_timing()}
        log = {"model": manifest.name, "version": manifest.version, "heads": heads, **work_log(prediction)}
        log["answers"] = count_answers(reply.predictions)
        if part is not None:
            reply.experiment = log["experiment"] = part.mark
        return json_reply(reply, timing, log, _TOO_LARGE_HINT, prediction.unsaved)

    def _model_and_heads(self, body: PredictRequest) -> tuple[Predictor, list[str]]:
        """The model and the heads that a request names, or the default ones. Raises NotFound and Invalid."""
        name = body.model
        predictor = self.models.default if isinstance(name, UnsetType) else find_model(self.models, name)
        heads = list(dict.fromkeys(body.heads or [predictor.manifest.default_head]))
        predictor.check_heads(heads)
        return predictor, heads

    def _apply_objective(
        self, body: PredictRequest, objective: Objective, texts: list[str], deadline: Deadline
    ) -> Choice:
        """The choice for a stated objective; its model, head and budget are written into the request."""
        from coldframe.pipeline.objective import check_objective, choose_arm

        check_objective(body, objective)
        name = body.model
        predictors = self.models.all() if isinstance(name, UnsetType) else [find_model(self.models, name)]
        arm, choice = choose_arm(predictors, texts, objective, self._settings.usd_per_hour, deadline)
        body.model, body.heads = arm.predictor.manifest.name, [arm.head]
        body.budget_ms = objective.budget_ms
        return choice

    def _texts(self, request: PredictRequest) -> list[str]:
        if isinstance(request.text, str) == isinstance(request.texts, list):
            raise Invalid('Expected either "text" (a string) or "texts" (a list of strings). Send one.')
        texts = [request.text] if isinstance(request.text, str) else list(request.texts or [])
        if len(texts) > self._settings.max_texts:
            limit = self._settings.max_texts
            raise TooLarge(f"Found {len(texts)} texts, expected at most {limit}. Send them in parts.")
        if request.explain and len(texts) > MAX_EXPLAINED_TEXTS:
            raise Invalid(
                f"Found {len(texts)} texts to explain, expected at most {MAX_EXPLAINED_TEXTS}."
                " Send them in parts, or leave out `explain`."
            )
        return texts

    @cached_property
    def _protocol(self) -> "InferenceProtocol":
        """Imported at its first use: the hot route does without it."""
        from coldframe.api.inference_protocol import InferenceProtocol

        return InferenceProtocol(self.models, self._settings)

    @cached_property
    def _jobs(self) -> "JobsRoutes":
        """Raises NotFound where jobs are not configured. Imported at its first use, as it imports boto3."""
        from coldframe.api.jobs_routes import open_jobs_routes

        return open_jobs_routes(self.models, self._settings)

    @cached_property
    def _feedback(self) -> "FeedbackRoutes":
        """Raises NotFound where feedback is not configured. Imported at its first use."""
        from coldframe.api.feedback_routes import open_feedback_routes

        return open_feedback_routes(self.models, self._settings)

    @cached_property
    def _sql(self) -> "SqlRoutes":
        from coldframe.api.sql_routes import SqlRoutes

        return SqlRoutes(self.models, self._settings)

    def _embeddings(self, request: Request) -> Reply:
        from coldframe.api.openai import answer_embeddings

        return answer_embeddings(self.models, self._settings, request)

    def _models(self, request: Request) -> Reply:
        return json_reply(ModelList("list", model_cards(self.models, self._created_s)))

    def _model(self, request: Request) -> Reply:
        return json_reply(model_card(self.models, self._created_s, request.params["model"]))

    def _health(self, request: Request) -> Reply:
        versions = {predictor.manifest.name: predictor.manifest.version for predictor in self.models.all()}
        return json_reply(Health("ok", next(iter(versions.values())), versions))

    def _line(
        self, request: Request, reply: Reply, start: Start, started_s: float, trace: "Trace | None"
    ) -> str:
        is_hot = (request.method, request.path) in self._router.hot
        path = request.path if is_hot else self._router.pattern(request.path)
        # An unknown path is the caller's text.
        record = log_record(request, path or "other", reply.status, start, time.perf_counter() - started_s)
        record |= reply.log
        if self._telemetry is None:
            record.pop(BLOCKS, None)
        else:
            self._telemetry.add_to(record, trace, started_s, time.time())
        return log_line(**record)


def _open_telemetry(settings: Settings, start_kind: str) -> "Telemetry | None":
    """None where neither metrics nor traces are wanted: then nothing is imported for them."""
    has_traces = settings.traces != "off"
    if not settings.metrics_namespace and not has_traces:
        return None
    from coldframe.telemetry.telemetry import Telemetry

    return Telemetry(settings.metrics_namespace, has_traces, start_kind)


def _open_marker(settings: Settings) -> "Marker | None":
    """None without a key: then nothing is imported for feedback. Raises BadSetting for a key of no use."""
    if not settings.feedback_key:
        return None
    from coldframe.feedback.ids import Signer
    from coldframe.feedback.marks import Marker

    if settings.feedback_text_key:
        from coldframe.feedback.texts import TextSealer

        TextSealer(settings.feedback_text_key)
    has_digests = bool(settings.feedback_text_key)
    return Marker(Signer(settings.feedback_key), settings.feedback_sample, has_digests=has_digests)


def _open_experiments(
    settings: Settings, models: Models, log: Callable[[str], None], start_kind: str
) -> "Keeper | None":
    """None without a store: then nothing is imported for experiments."""
    if not settings.experiments:
        return None
    from coldframe.experiments.keeper import open_keeper

    return open_keeper(settings, models, log, stays=start_kind == "server")


def text_answers(prediction: Prediction, predictor: Predictor, request: PredictRequest) -> list[TextAnswer]:
    """Predictions in the contract's form, one for each text, in input order."""
    labels = predictor.manifest.labels
    answers = [TextAnswer(index, {}) for index in range(prediction.usage.texts)]
    for head, rows in prediction.answers.items():
        sources = sources_of(head, len(rows), prediction.sources, prediction.members)
        requested = request.min_probability
        least = predictor.min_probability[head] if isinstance(requested, UnsetType) else requested
        for answer, row, source in zip(answers, rows, sources, strict=True):
            head_answer = answer.heads[head] = _head_answer(row, labels, request, least)
            if head == ENSEMBLE:
                head_answer.members = list(prediction.members)
                head_answer.rushed = not prediction.is_whole or bool(source and source.is_rushed)
            elif source is not None:
                head_answer.by, head_answer.rushed = source.by, source.is_rushed
    return answers


def _head_answer(row: Vector, labels: list[str], request: PredictRequest, least: float) -> HeadAnswer:
    *values, strangeness = to_floats(row)
    top = [Score(labels[i], values[i]) for i in ranked(values)[: request.top_k]]
    answer = HeadAnswer(top[0].label, top[0].probability, top, round(strangeness, SCORE_DIGITS))
    if top[0].probability < least:
        answer.label, answer.abstained = None, True
    if request.scores:
        answer.scores = dict(zip(labels, values, strict=True))
    return answer
