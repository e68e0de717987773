"""What the express lane reads of one model, without msgspec."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from coldframe.errors import BundleCorrupt
from coldframe.model.estimator import UNTEMPERED, Estimator
from coldframe.model.files import (
    MANIFEST,
    REBUILD,
    check_trained_on,
    encoder_folder,
    model_folder,
    read_file,
)
from coldframe.model.wordpiece import load_plain

if TYPE_CHECKING:
    from coldframe.model.bundle import EstimatorFacts

_OF_TOKENIZER = ("tokenizer", "lower_case", "lower_texts")  # facts of the encoder


class LaneModel:
    """Names, labels, estimator and tokenizer of a model.

    max_tokens: as many of a text are used. alone_temperature: of an answer by the estimator alone.
    """

    def __init__(self, model_dir: Path, name: str) -> None:
        """Raises BundleMissing or BundleCorrupt when what it needs cannot be used."""
        folder = model_folder(model_dir, name)
        try:
            manifest = json.loads(read_file(folder, MANIFEST))
            self.name, self.version, self.labels = (manifest[key] for key in ("name", "version", "labels"))
            facts = cast("EstimatorFacts", SimpleNamespace(**manifest["estimator"]))
            self.estimator, self.min_probability = Estimator(folder, facts), facts.min_probability
            self.alone_temperature: float = manifest["estimator"].get("answer_temperatures", UNTEMPERED)[0]
            encoder = encoder_folder(model_dir, manifest["encoder"]["name"])
            built = json.loads(read_file(encoder, MANIFEST))
            check_trained_on(model_dir, name, encoder.name, manifest["encoder"]["version"], built["version"])
            size = built["facts"]
            taken = 2 + len(size.get("prefix_tokens", ()))  # by what is around a window's text
            self.max_tokens = (size["max_tokens"] - taken) * size["max_windows"]
            tokenizer = {fact: size[fact] for fact in _OF_TOKENIZER if fact in size}
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise BundleCorrupt(f"{folder / MANIFEST} cannot be read: {exc}. {REBUILD}") from exc
        self.tokenizer = load_plain(encoder, **tokenizer)
