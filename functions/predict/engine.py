"""Everything that answers requests, once it is loaded."""

from collections.abc import Callable, Mapping
from functools import cached_property

from coldframe.api.api import Api
from coldframe.coldstart.pings import is_ping
from coldframe.config import Settings, load_settings
from coldframe.pipeline.predictor import Predictor, load_predictor
from coldframe.timing import StartMark
from functions.predict.events import Context, Event, Response, read_event, write_response


class Engine:
    """Answers API Gateway events: hot routes directly, anything else through FastAPI."""

    def __init__(self, environ: Mapping[str, str], has_answered: bool) -> None:
        """Ahead of traffic it loads everything; on demand the model follows in the background.

        has_answered: whether this environment's cold answer has been given.
        Raises BadSetting or a BundleError, and ahead of traffic RuntimeError when it cannot answer.
        """
        settings = load_settings(environ)
        predictor = load_predictor(settings)
        initialization_type = environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
        is_on_demand = initialization_type == "on-demand"
        self.api = Api(predictor, settings, StartMark(is_warm=has_answered or not is_on_demand))
        if is_on_demand:
            predictor.model.start()
        else:
            self._prepare(predictor, settings, will_be_snapshot=initialization_type == "snap-start")

    def answer(self, event: Event, context: Context) -> Response:
        """The function's result for an HTTP API (payload 2.0) or REST API (1.0) event, or a ping."""
        if is_ping(event):
            return self._answer_ping(event, context)
        request = read_event(event, context)
        if self.api.answers(request.method, request.path):
            return write_response(self.api.answer(request))
        return self.fastapi(event, context)

    def _answer_ping(self, event: Event, context: Context) -> Response:
        from functions.predict.answer_ping import answer_ping

        return answer_ping(event, self.api, context.aws_request_id, context.get_remaining_time_in_millis)

    def _prepare(self, predictor: Predictor, settings: Settings, will_be_snapshot: bool) -> None:
        """Ahead of traffic, where nobody waits for the init phase: everything once."""
        from functions.predict.priming import prime

        model = predictor.model.get()
        if not settings.max_batch_tokens:
            model.measure_budget()
        predictor.cache.set_up()
        prime(self.answer)
        if will_be_snapshot:
            from functions.predict.snapshot import register_hooks

            register_hooks(self.api)

    @cached_property
    def fastapi(self) -> Callable[[Event, Context], Response]:
        """The same contract through FastAPI and Mangum; imported when it is first needed."""
        from mangum import Mangum

        from functions.predict.routes import create_app, without_host

        # Mangum would enter the lifespan on every call; everything is loaded already.
        # What is not named as text would leave as base64.
        text = ["text/", "application/json", "application/problem+json"]
        mangum = Mangum(create_app(self.api), lifespan="off", text_mime_types=text)
        return lambda event, context: mangum(without_host(event), context)  # type: ignore[arg-type]
