"""Names that models are served under: the models, their encoders, and each head."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from msgspec import UNSET

from coldframe.errors import NotFound, echo
from coldframe.model.bundle import EncoderManifest, EnsembleFacts, HeadFacts, Manifest
from coldframe.pipeline.models import Models
from coldframe.pipeline.predictor import Predictor
from coldframe.schemas import HeadCard, ModelCard

T = TypeVar("T")


class Named(NamedTuple):
    """A name of the Open Inference Protocol, resolved. head: None for the predictor's encoder."""

    predictor: Predictor
    head: str | None

    @property
    def version(self) -> str:
        """Digest of the encoder, or of the model that the head belongs to."""
        return self.predictor.encoder.version if self.head is None else self.predictor.manifest.version


def find_model(models: Models, name: str) -> Predictor:
    """The model that a request names. Raises NotFound, which lists the models."""
    if name not in models.names:
        raise _unknown(name, models.names)
    return models.get(name)


def head_model(manifest: Manifest, head: str) -> str:
    """The name of a head in the protocol: its model's name, then its own."""
    return f"{manifest.name}-{head}"


def protocol_models(models: Models) -> dict[str, Named]:
    """Names of the Open Inference Protocol: the encoders, then each model's heads, `auto` first."""
    predictors = models.all()
    encoders = {predictor.encoder.name: Named(predictor, None) for predictor in reversed(predictors)}
    heads = {
        head_model(predictor.manifest, head): Named(predictor, head)
        for predictor in predictors
        for head in predictor.min_probability
    }
    return encoders | heads


def find_protocol_model(models: Models, name: str) -> Named:
    """Resolves a name of the protocol. Raises NotFound, which lists the names."""
    model, _, head = name.rpartition("-")
    if model in models.names:  # loads no other model, which may be broken
        predictor = models.get(model)
        if head in predictor.min_probability:
            return Named(predictor, head)
    if name == models.default.encoder.name:
        return Named(models.default, None)
    return _find(protocol_models(models), name)


def find_encoder(models: Models, name: str) -> Predictor:
    """A predictor by the name of its encoder, or of a model on that encoder.

    If all models share one encoder, every name is accepted, since clients of OpenAI's API send names of
    their own. Raises NotFound where there are several encoders, and lists them.
    """
    if len(models.names) == 1 or name == models.default.encoder.name:
        return models.default
    if name in models.names:
        return models.get(name)
    predictors = models.all()
    encoders = {predictor.encoder.name: predictor for predictor in reversed(predictors)}
    if len(encoders) == 1:
        return models.default
    return _find(encoders | {predictor.manifest.name: predictor for predictor in predictors}, name)


def model_card(models: Models, created_s: int, name: str) -> ModelCard:
    """The card of one model. Raises NotFound, which lists the names."""
    return _find({card.id: card for card in model_cards(models, created_s)}, name)


def model_cards(models: Models, created_s: int) -> list[ModelCard]:
    """Answer of `GET /v1/models`: models, their encoders, their heads.

    created_s: when this environment loaded them. Models have no date, so that two equal builds have equal
    digests.
    """
    manifests = [predictor.manifest for predictor in models.all()]
    encoders = {predictor.encoder.name: predictor.encoder for predictor in models.all()}
    cards = [_model_card(manifest, created_s) for manifest in manifests]
    cards[0].is_default = True
    heads = (card for manifest in manifests for card in _head_cards(manifest, created_s))
    return [*cards, *(_encoder_card(encoder, created_s) for encoder in encoders.values()), *heads]


def _card(name: str, version: str, created_s: int) -> ModelCard:
    return ModelCard(id=name, object="model", created=created_s, owned_by="coldframe", version=version)


def _model_card(manifest: Manifest, created_s: int) -> ModelCard:
    card = _card(manifest.name, manifest.version, created_s)
    card.encoder, card.labels, card.default_head = (
        manifest.encoder.name,
        manifest.labels,
        manifest.default_head,
    )
    card.heads = {name: _head_card(facts) for name, facts in manifest.named_heads.items()}
    card.figures = manifest.figures or UNSET
    return card


def _encoder_card(encoder: EncoderManifest, created_s: int) -> ModelCard:
    card, facts = _card(encoder.name, encoder.version, created_s), encoder.facts
    card.dimension, card.max_tokens = facts.dimension, facts.max_tokens * facts.max_windows
    return card


def _head_cards(manifest: Manifest, created_s: int) -> Iterable[ModelCard]:
    for name, facts in manifest.named_heads.items():
        card = _card(head_model(manifest, name), manifest.version, created_s)
        card.labels, card.heads = manifest.labels, {name: _head_card(facts)}
        yield card


def _head_card(facts: HeadFacts | EnsembleFacts) -> HeadCard:
    return HeadCard(facts.accuracy)


def _find(values: Mapping[str, T], name: str) -> T:
    if name not in values:
        raise _unknown(name, values)
    return values[name]


def _unknown(name: str, names: Iterable[str]) -> NotFound:
    return NotFound(f"{echo(name)} is not a model here. Send one of: {', '.join(names)}.")
