"""Encoders that cannot be made, and what is said of them. Runs in the build environment."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from safetensors.torch import load_file, save_file

from coldframe_training.encoder_build.make_encoder import make_encoder
from coldframe_training.files.errors import EncoderRefused


def spoil(encoder: Path, root: Path) -> dict[str, str]:
    """What is said of copies of an encoder of two layers, in `root`, by what is wrong with each."""

    def refusal(name: str, change: Callable[[Path], None]) -> str:
        folder, served = root / f"spoiled-{name}", root / f"spoiled-{name}-served"
        shutil.copytree(encoder, folder)
        served.mkdir()
        change(folder)
        try:
            make_encoder(folder, served)
        except EncoderRefused as exc:
            return str(exc)
        return "made"

    def drop_weights(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        del weights["encoder.layer.1.output.dense.weight"]
        save_file(weights, folder / "model.safetensors", {"format": "pt"})

    def stretch_activations(folder: Path) -> None:
        """One value far out, of which nothing comes, and in whose eight bits the others drown."""
        weights = load_file(folder / "model.safetensors")
        for layer in ("encoder.layer.0", "encoder.layer.1"):
            inner = (
                ("intermediate.dense", "output.dense"),
                ("attention.self.value", "attention.output.dense"),
            )
            for before, after in inner:
                weights[f"{layer}.{before}.bias"][3] = 40_000.0
                weights[f"{layer}.{after}.weight"][:, 3] = 0.0
        save_file(weights, folder / "model.safetensors", {"format": "pt"})

    def glue_prefix(folder: Path) -> None:
        (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query"}}')

    def shrink_vocabulary(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_bytes())
        (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 100}))

    def cut_off_weights(folder: Path) -> None:
        content = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(content[: len(content) // 2])

    def widen_config(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_bytes())
        (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 999}))

    changes = (
        drop_weights,
        stretch_activations,
        glue_prefix,
        shrink_vocabulary,
        cut_off_weights,
        widen_config,
    )
    said = {change.__name__: refusal(change.__name__, change) for change in changes}
    with patch("coldframe_training.encoder_build.export._MOST_BYTES", 100_000):
        return said | {"too_large": refusal("too_large", lambda folder: None)}
