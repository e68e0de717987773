"""Everything that answers requests, once it is loaded."""

from collections.abc import Callable, Mapping
from functools import cached_property

from coldframe.api import Api
from coldframe.config import load_settings
from coldframe.predictor import load_predictor
from coldframe.timing import StartMark
from coldframe.warm_up import is_ping
from functions.predict.events import Context, Event, Response, read_event, write_response


class Engine:
    """Answers API Gateway events: hot routes directly, anything else through FastAPI."""

    def __init__(self, environ: Mapping[str, str], has_answered: bool) -> None:
        """Ahead of traffic it loads everything; on demand the model follows in the background.

        has_answered: whether this environment's cold answer has been given.
        Raises BadSetting or a BundleError, and ahead of traffic RuntimeError when it cannot answer.
        """
        settings = load_settings(environ)
        initialization_type = environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
        predictor = load_predictor(settings)
        if initialization_type == "on-demand":
            predictor.model.start()
        else:  # nobody waits for this init phase
            model = predictor.model.get()
            if not settings.max_batch_tokens:
                model.measure_budget()
            predictor.cache.set_up()
        is_warm = has_answered or initialization_type != "on-demand"
        self.api = Api(predictor, settings, StartMark(is_warm))
        if initialization_type != "on-demand":
            self._prepare(initialization_type)

    def answer(self, event: Event, context: Context) -> Response:
        """The function's result for an HTTP API (payload 2.0) or REST API (1.0) event, or a warm-up ping."""
        if is_ping(event):
            return self._answer_ping(event, context)
        request = read_event(event, context)
        if self.api.answers(request.method, request.path):
            return write_response(self.api.answer(request))
        return self.fastapi(event, context)

    def _answer_ping(self, event: Event, context: Context) -> Response:
        from functions.predict.warmup import answer_ping

        return answer_ping(event, self.api, context.aws_request_id, context.get_remaining_time_in_millis)

    def _prepare(self, initialization_type: str) -> None:
        """Ahead of traffic: everything once, and ready for a snapshot where one will be taken."""
        from functions.predict.priming import prime

        prime(self.answer)
        if initialization_type == "snap-start":
            from functions.predict.snapshot import register_hooks

            register_hooks(self.api)

    @cached_property
    def fastapi(self) -> Callable[[Event, Context], Response]:
        """The same contract through FastAPI and Mangum; imported when it is first needed."""
        from mangum import Mangum

        from functions.predict.routes import create_app

        # Mangum would enter the lifespan on every call; everything is loaded already.
        # What is not named as text would leave as base64.
        text = ["text/", "application/json", "application/problem+json"]
        return Mangum(create_app(self.api), lifespan="off", text_mime_types=text)  # type: ignore[return-value]
