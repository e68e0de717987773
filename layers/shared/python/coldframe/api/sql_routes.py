"""Routes of database engines: `POST /v1/sql/{engine}/{function}`."""

from coldframe.api.catalogue import find_model
from coldframe.api.messages import Reply, Request, deadline_of, decode_json, json_reply, read_body
from coldframe.config import Settings
from coldframe.errors import OutOfTime, TooLarge
from coldframe.pipeline.models import Models
from coldframe.sql.engines import ENGINES, Batch, Engine
from coldframe.sql.functions import FUNCTIONS, SqlFunctions, Value
from coldframe.timing import StageTimes

_TOKEN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


class SqlRoutes:
    """Answers batches of engines for one environment. Safe for threads: state belongs to a request."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self._models = models
        self._settings = settings

    def answer(self, request: Request) -> Reply:
        """The values of a batch, as its engine reads them. Raises a request error."""
        *_, name, function = request.path.split("/")
        engine, arguments = ENGINES[name], FUNCTIONS[function]
        times = StageTimes()
        with times.stage("decode"):
            batch = self._read(engine, arguments, request)
        with times.stage("answer"):
            values = self._call(engine, function, batch, request)
        with times.stage("encode"):
            reply = engine.write(batch, values)
        log = {"rows": len(batch.columns[0]), **_named(batch.batch_id), **times.log_fields()}
        return json_reply(reply, {"server-timing": times.server_timing()}, log, engine.smaller)

    def _read(self, engine: Engine, arguments: int, request: Request) -> Batch:
        try:
            body = read_body(request, self._settings)
        except TooLarge as exc:
            raise TooLarge(f"{exc} {engine.smaller}") from exc
        decoded = decode_json(body, engine.decoders[arguments], engine.example)
        batch = engine.read(decoded, arguments, request.headers)
        rows, most = len(batch.columns[0]), self._settings.max_texts
        if rows > most:
            raise TooLarge(
                f"The batch has {rows} rows, expected at most {most}. {engine.smaller}"
                " Or raise COLDFRAME_MAX_TEXTS."
            )
        return batch

    def _call(self, engine: Engine, function: str, batch: Batch, request: Request) -> list[Value]:
        models = self._models
        predictor = models.default if batch.model is None else find_model(models, batch.model)
        functions = SqlFunctions(predictor, batch.head)
        try:
            return list(functions.call(function, batch.columns, deadline_of(request)))
        except OutOfTime as exc:
            raise OutOfTime(f"{exc} {engine.smaller} Or raise the function's timeout.") from exc


def _named(batch_id: str) -> dict[str, str]:
    """The engine's id of the batch, for the log, if it has the form of an id: the value is the caller's."""
    return {"batch": batch_id} if 0 < len(batch_id) <= 128 and _TOKEN.issuperset(batch_id) else {}
