"""The models that one bundle is served as: the classifier, the encoder, and each head."""

from coldframe.api.messages import echo
from coldframe.api.schemas import HeadCard, ModelCard
from coldframe.errors import NotFound
from coldframe.model.bundle import HeadFacts, Manifest
from coldframe.model.files import AUTO

ENCODER_MODEL = "minilm-l6-v2"


def model_names(manifest: Manifest) -> list[str]:
    """Models of the Open Inference Protocol: the encoder, then the heads, `auto` first."""
    return [ENCODER_MODEL, *(head_model(manifest, head) for head in [AUTO, *manifest.heads])]


def head_model(manifest: Manifest, head: str) -> str:
    """The name of a head among models: the bundle's own name, and the head's."""
    return f"{manifest.name}-{head}"


def head_of(manifest: Manifest, model: str) -> str | None:
    """The head that `model` is, or None if it is the encoder.

    Raises NotFound, which lists the models.
    """
    names = model_names(manifest)
    if model not in names:
        raise NotFound(f"{echo(model)} is no model here. Models: {', '.join(names)}.")
    return None if model == ENCODER_MODEL else model.removeprefix(f"{manifest.name}-")


def model_card(manifest: Manifest, created_s: int, model: str) -> ModelCard:
    """The card of one model. Raises NotFound, which lists the models."""
    cards = {card.id: card for card in model_cards(manifest, created_s)}
    if model not in cards:
        raise NotFound(f"{echo(model)} is no model here. Models: {', '.join(cards)}.")
    return cards[model]


def model_cards(manifest: Manifest, created_s: int) -> list[ModelCard]:
    """What `GET /v1/models` lists.

    created_s: when this environment loaded them; a bundle has no date, so that
    two builds of the same are the same.
    """

    def card(name: str) -> ModelCard:
        return ModelCard(
            id=name, object="model", created=created_s, owned_by="coldframe", version=manifest.version
        )

    classifier, encoder = card(manifest.name), card(ENCODER_MODEL)
    classifier.labels, classifier.default_head = manifest.labels, manifest.default_head
    classifier.heads = {name: _head_card(facts) for name, facts in manifest.heads.items()}
    encoder.dimension = manifest.encoder.dimension
    encoder.max_tokens = manifest.encoder.max_tokens * manifest.encoder.max_windows
    heads = []
    for name, facts in manifest.heads.items():
        head = card(head_model(manifest, name))
        head.labels, head.heads = manifest.labels, {name: _head_card(facts)}
        heads.append(head)
    return [classifier, encoder, *heads]


def _head_card(facts: HeadFacts) -> HeadCard:
    return HeadCard(facts.accuracy)
