"""`POST /v1/embeddings`, as OpenAI's clients send and read it."""

import binascii

import msgspec

from coldframe.api.catalogue import find_encoder
from coldframe.api.messages import (
    SEND_FEWER,
    Reply,
    Request,
    deadline_of,
    decode_json,
    json_reply,
    read_body,
    work_log,
)
from coldframe.api.tensors import short_floats
from coldframe.config import Settings
from coldframe.errors import Invalid, TooLarge
from coldframe.pipeline.models import Models
from coldframe.schemas import EmbeddingItem, EmbeddingsReply, EmbeddingsRequest, EmbeddingsUsage
from coldframe.vectors import little_endian

_EXAMPLE = '{"input": "…"}'
_TOO_LARGE_HINT = 'Request "encoding_format": "base64", which takes less than half, or send fewer texts.'


class _TokenRequest(msgspec.Struct):
    """Embedding inputs that OpenAI accepts, token ids among them."""

    input: list[int | list[int]]


_DECODER = msgspec.json.Decoder(EmbeddingsRequest)
_TOKEN_DECODER = msgspec.json.Decoder(_TokenRequest)


def answer_embeddings(models: Models, settings: Settings, request: Request) -> Reply:
    """The embedding of each text, in input order."""
    body = _read(request, settings)
    predictor = models.default if body.model is None else find_encoder(models, body.model)
    _check_dimensions(body.dimensions, predictor.encoder.facts.dimension)
    texts = [body.input] if isinstance(body.input, str) else body.input
    if len(texts) > settings.max_texts:
        raise TooLarge(
            f"Found {len(texts)} texts, expected at most {settings.max_texts}. Send them in parts."
        )
    embedded = predictor.embed(texts, deadline_of(request))
    in_base64 = body.encoding_format == "base64"
    reply = EmbeddingsReply(
        object="list",
        data=[
            EmbeddingItem(
                "embedding", index, _base64(little_endian(vector)) if in_base64 else short_floats(vector)
            )
            for index, vector in enumerate(embedded.vectors)
        ],
        model=body.model or predictor.encoder.name,
        usage=EmbeddingsUsage(embedded.prompt_tokens, embedded.prompt_tokens),
    )
    timing = {"server-timing": embedded.times.server_timing()}
    hint = SEND_FEWER if in_base64 else _TOO_LARGE_HINT
    log = {"version": predictor.encoder.version, **work_log(embedded)}
    return json_reply(reply, timing, log, hint, embedded.unsaved)


def _read(request: Request, settings: Settings) -> EmbeddingsRequest:
    body = read_body(request, settings)
    try:
        return decode_json(body, _DECODER, _EXAMPLE)
    except Invalid:
        if _has_tokens(body):
            raise Invalid(
                "Found token ids in `input`, which belong to another tokenizer."
                " Send texts: a string or a list of strings."
            ) from None
        raise


def _has_tokens(body: bytes) -> bool:
    try:
        return bool(_TOKEN_DECODER.decode(body).input)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _check_dimensions(requested: int | None, dimension: int) -> None:
    if requested not in (None, dimension):
        raise Invalid(
            f"Found dimensions {requested}, expected {dimension}: its embeddings cannot be shortened."
            " Leave `dimensions` out."
        )


def _base64(content: bytes) -> str:
    return binascii.b2a_base64(content, newline=False).decode("ascii")
