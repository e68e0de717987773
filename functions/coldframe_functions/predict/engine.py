"""The loaded function: API Gateway's events in, API Gateway's responses out."""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from coldframe.api.api import Api, Reply, Request
from coldframe.api.gateway_event import principal_of, read_http
from coldframe.coldstart import pings
from coldframe.config import Settings, load_settings
from coldframe.pipeline.models import Models, load_models
from coldframe.timing import StartMark

Event = Mapping[str, Any]
Response = dict[str, Any]
Result: TypeAlias = Any
"""Result of an invocation: JSON for its caller. API Gateway reads a `Response`."""


class Context(Protocol):
    """Attributes of Lambda's context object that the function uses."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


_DIRECT_EVENTS: Sequence[tuple[Callable[[Event], bool], str]] = (
    (lambda event: event.get("source") == pings.SOURCE, "answer_ping"),
    (lambda event: "external_function" in event, "answer_sql"),
    (lambda event: "@type" in event, "answer_athena"),
    (lambda event: "Items" in event, "answer_batch"),
)
"""Events that do not come from API Gateway: a test for each kind, and the module that answers it."""


class Engine:
    """Answers API Gateway events: hot routes directly, all others through FastAPI.

    Safe for threads, as `Api` is; if two threads create the FastAPI application, one of the two is kept.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Loads every model. Ahead of traffic it also answers requests of each kind once.

        Raises BadSetting or a BundleError, and ahead of traffic RuntimeError when it cannot answer.
        """
        settings = load_settings(environ)
        models = load_models(settings)
        initialization_type = environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
        is_on_demand = initialization_type == "on-demand"
        self.api = Api(models, settings, StartMark(is_warm=not is_on_demand), start_kind=initialization_type)
        if not is_on_demand:
            # On a Managed Instance this is one of several processes that share processors.
            is_alone = environ.get("AWS_LAMBDA_MAX_CONCURRENCY", "1") == "1"
            will_be_snapshot = initialization_type == "snap-start"
            self._prepare(models, settings, will_be_snapshot, can_measure=is_alone)

    def handle_event(self, event: Event, context: Context) -> Result:
        """The result for an HTTP API (payload 2.0) or REST API (1.0) event, a ping, or a batch.

        Batches come from a database (`external_function`) or from a Distributed Map (`Items`).
        """
        for recognises, name in _DIRECT_EVENTS:
            if recognises(event):
                from importlib import import_module

                answer = getattr(import_module(f"coldframe_functions.predict.{name}"), name)
                self.api.log_sketches()
                return answer(event, self.api, context.aws_request_id, clock_of(context))
        request = read_event(event, context)
        if self.api.answers(request.method, request.path):
            return write_response(self.api.answer(request))
        return self.fastapi(event, context)

    def _prepare(self, models: Models, settings: Settings, will_be_snapshot: bool, can_measure: bool) -> None:
        """Answers requests of each kind once, ahead of traffic, where no caller waits for the init phase."""
        from coldframe_functions.predict.priming import prime

        encoders = {predictor.encoder.name: predictor.model.encoder for predictor in models.all()}
        if can_measure and not settings.max_batch_tokens:
            for encoder in encoders.values():
                encoder.measure_budget()
        self.api.set_up()
        prime(self.handle_event)
        self.api.start_counting()
        if will_be_snapshot:
            from coldframe_functions.predict.snapshot import register_hooks

            register_hooks(self.api)

    @cached_property
    def fastapi(self) -> Callable[[Event, Context], Response]:
        """The same contract through FastAPI and Mangum; imported at its first use."""
        from mangum import Mangum

        from coldframe_functions.predict.routes import create_app, without_host

        # Mangum would enter the lifespan on every call; everything is loaded already. Types that are not
        # listed as text would be sent as base64.
        text = ["text/", "application/json", "application/problem+json"]
        mangum = Mangum(create_app(self.api, clock_of), lifespan="off", text_mime_types=text)
        return lambda event, context: mangum(without_host(event), context)  # type: ignore[arg-type]


def read_event(event: Event, context: Context) -> Request:
    """The request inside an API Gateway event.

    Raises ValueError for an event of another source.
    """
    http = read_http(event)
    if http is None:
        raise ValueError(
            "This event does not come from API Gateway: expected payload 2.0 (HTTP API) or 1.0 (REST API)."
            " Call the function through its API, or send an event in that form."
        )
    body = base64.b64decode(http.body) if http.is_base64 else http.body.encode(errors="surrogatepass")
    return Request(
        http.method,
        http.path,
        http.headers,
        body,
        context.aws_request_id,
        time_left_s=clock_of(context),
        principal=principal_of(event),
        platform_trace=os.environ.get("_X_AMZN_TRACE_ID", ""),
    )


def write_response(reply: Reply) -> Response:
    """A reply in the form that both kinds of API Gateway read.

    A REST API decodes base64 only for the types in its `BinaryMediaTypes`; an HTTP API always does.
    """
    return {
        "statusCode": reply.status,
        "headers": reply.headers,
        "body": base64.b64encode(reply.body).decode() if reply.is_binary else reply.body.decode(),
        "isBase64Encoded": reply.is_binary,
    }


def clock_of(context: Context) -> Callable[[], float]:
    """Function that returns the seconds until Lambda stops this invocation."""
    return lambda: context.get_remaining_time_in_millis() / 1e3
