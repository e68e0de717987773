"""The models that are served, each loaded when it is first asked for; models of one encoder share it."""

import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from coldframe.cache.cache import load_cache
from coldframe.coldstart.collector import paused_collector
from coldframe.coldstart.lazy import LazyValue
from coldframe.config import Settings
from coldframe.model.bundle import EncoderFacts, EncoderManifest, load_pair
from coldframe.model.estimator import Estimator
from coldframe.model.files import encoder_folder, model_folder, served_models
from coldframe.model.tokenizer import TextWindows
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import MovingAverage

if TYPE_CHECKING:
    from coldframe.model.model import Model, TextEncoder

_MS_PER_TOKEN = 0.1  # of a forward pass, until passes are measured


class Models:
    """Predictors by the name of their model. Safe for threads.

    default: answers requests that name no model.
    """

    def __init__(self, make: Mapping[str, Callable[[], Predictor]]) -> None:
        """make: a predictor for each model; called for the first one now, for others when they are asked for.

        Raises a BundleError when the first one cannot be used.
        """
        self._predictors = {name: LazyValue(function) for name, function in make.items()}
        self.names = list(make)
        self.default = self._predictors[self.names[0]].get()

    def get(self, name: str) -> Predictor:
        """The predictor of one of `names`. Raises a BundleError."""
        return self._predictors[name].get()

    def all(self) -> list[Predictor]:
        """The predictors of all models. Raises a BundleError."""
        return [predictor.get() for predictor in self._predictors.values()]


class _SharedEncoder(NamedTuple):
    """What the models of one encoder share. encoder: loaded for the first text that the estimator leaves."""

    manifest: EncoderManifest
    tokenizer: TextWindows
    encoder: "LazyValue[TextEncoder]"
    ms_per_token: MovingAverage


class _Loader:
    """Makes the predictors of one folder of encoders and models."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._encoders: dict[str, _SharedEncoder] = {}

    def predictor(self, name: str) -> Predictor:
        """The predictor of a model. Raises a BundleError when what the estimator needs cannot be used."""
        settings, folder = self._settings, model_folder(self._settings.model_dir, name)
        manifest, built = load_pair(settings.model_dir, name)
        with self._lock:  # of two models that are loaded at once, one makes what both share
            if built.name not in self._encoders:
                self._encoders[built.name] = _share(settings, built)
                if len(self._encoders) == 1:
                    self._cache = load_cache(settings, built.facts, self._encoders[built.name].ms_per_token)
        shared = self._encoders[built.name]
        if shared.manifest.version != built.version:  # other windows, or another device
            manifest = manifest.with_encoder(shared.manifest.version)
        estimator = Estimator(folder, manifest.estimator)
        model = LazyValue(partial(_load_model, shared.encoder, folder, manifest.estimator.partner, estimator))
        return Predictor(manifest, shared.manifest, shared.tokenizer, estimator, model, self._cache)


def load_models(settings: Settings) -> Models:
    """The models of the settings; the default one is there at once, but for what the estimator does without.

    Raises a BundleError when the default one cannot be used.
    """
    loader = _Loader(settings)
    names = served_models(settings.model_dir, settings.models)
    return Models({name: partial(loader.predictor, name) for name in names})


def load_predictor(settings: Settings) -> Predictor:
    """The predictor of the default model. Raises what `load_models` raises."""
    return load_models(settings).default


def chosen(settings: Settings, folder: Path | str | None, model: str | None) -> Settings:
    """The settings with a caller's folder of models and name of one; None keeps the settings' own."""
    given = {"model_dir": folder and Path(folder), "models": model}
    return replace(settings, **{name: value for name, value in given.items() if value})


def _share(settings: Settings, built: EncoderManifest) -> _SharedEncoder:
    if settings.device != "cpu" and (found := _on_gpu(settings, built)):
        return found
    folder = encoder_folder(settings.model_dir, built.name)
    manifest = built.with_windows(settings.max_windows) if settings.max_windows else built
    tokenizer, ms_per_token = TextWindows(folder, manifest.facts), MovingAverage(_MS_PER_TOKEN)
    load = partial(_load_encoder, settings, folder, manifest.facts, tokenizer, ms_per_token)
    return _SharedEncoder(manifest, tokenizer, LazyValue(load), ms_per_token)


def _on_gpu(settings: Settings, built: EncoderManifest) -> _SharedEncoder | None:
    """The encoder on a GPU, loaded at once: only then is known whether it is served. None: the CPU serves."""
    _limit_blas()
    from coldframe.gpu.load import load_on_gpu

    found = load_on_gpu(settings, built)
    if found is None:
        return None
    loaded = LazyValue(lambda: found.encoder)
    loaded.get()
    return _SharedEncoder(found.manifest, found.tokenizer, loaded, found.ms_per_token)


def _limit_blas() -> None:
    """BLAS would start threads for the whole machine; heads multiply one row at a time."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _load_encoder(
    settings: Settings,
    folder: Path,
    facts: EncoderFacts,
    windows: TextWindows,
    ms_per_token: MovingAverage,
) -> "TextEncoder":
    _limit_blas()
    with paused_collector():
        from coldframe.model.model import load_encoder  # numpy and onnxruntime, not a moment earlier

        return load_encoder(settings, folder, facts, windows, ms_per_token)


def _load_model(
    encoder: "LazyValue[TextEncoder]", folder: Path, partner: str, estimator: Estimator
) -> "Model":
    loaded = encoder.get()
    with paused_collector():
        from coldframe.model.model import Model, add_with_numpy, load_heads

        add_with_numpy(estimator)
        return Model(loaded, load_heads(folder, partner))
