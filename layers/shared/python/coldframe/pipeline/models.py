"""The served models, all loaded at once; models on one encoder share it."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from coldframe.cache.cache import PredictionCache, load_cache
from coldframe.config import Settings
from coldframe.errors import BundleError
from coldframe.model.bundle import EncoderManifest, load_pair
from coldframe.model.encoder import TextEncoder
from coldframe.model.estimator import Estimator
from coldframe.model.files import encoder_folder, model_folder, served_models
from coldframe.model.model import Model, load_encoder, load_heads
from coldframe.model.tokenizer import TextWindows
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import MovingAverage, log_line, since_ms

if TYPE_CHECKING:
    from coldframe.monitoring.sketch import Sketch
    from coldframe.pipeline.observer import Observer

_MS_PER_TOKEN = 0.1  # per forward pass, until passes are measured


class Models:
    """Predictors by the name of their model, the default one first. Safe for threads.

    default: answers requests that name no model.
    """

    def __init__(self, loaded: Mapping[str, Predictor | BundleError]) -> None:
        """loaded: a predictor for each model, or the error of its load. Raises the default model's error."""
        self._loaded = loaded
        self.names = list(loaded)
        self.default = self.get(self.names[0])

    def get(self, name: str) -> Predictor:
        """The predictor of one of `names`. Raises the BundleError of a model that cannot be used."""
        loaded = self._loaded[name]
        if isinstance(loaded, BundleError):
            raise loaded.with_traceback(None)
        return loaded

    def observers(self) -> list["Observer"]:
        """The observers of the models that are loaded and observed."""
        return [model.observer for model in self._predictors() if model.observer is not None]

    def observe(self) -> None:
        """Observes every model that is loaded from now on, for `sketch_lines`."""
        from coldframe.pipeline.observer import Observer

        for predictor in self._predictors():
            if predictor.observer is None:
                facts = predictor.manifest, predictor.encoder
                predictor.observer = Observer(
                    *facts, predictor.count_unknown, predictor.tokenizer.count_fragments
                )

    def all(self) -> list[Predictor]:
        """The predictors of all models. Raises a BundleError."""
        return [self.get(name) for name in self.names]

    def _predictors(self) -> list[Predictor]:
        return [model for model in self._loaded.values() if isinstance(model, Predictor)]


class _SharedEncoder(NamedTuple):
    """Parts that the models of one encoder share."""

    manifest: EncoderManifest
    tokenizer: TextWindows
    encoder: TextEncoder
    ms_per_token: MovingAverage


class _Loader:
    """Creates the predictors of one folder of encoders and models. Not safe for threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._encoders: dict[str, _SharedEncoder] = {}
        self._cache: PredictionCache | None = None

    def predictor(self, name: str) -> Predictor:
        """The predictor of a model. Raises a BundleError when the model cannot be used."""
        settings, folder = self._settings, model_folder(self._settings.model_dir, name)
        manifest, built = load_pair(settings.model_dir, name)
        if built.name not in self._encoders:
            self._encoders[built.name] = _share(settings, built)
        shared = self._encoders[built.name]
        if self._cache is None:
            self._cache = load_cache(settings, built.facts, shared.ms_per_token)
        if shared.manifest.version != built.version:  # other windows, or another device
            manifest = manifest.with_encoder(shared.manifest.version)
        estimator = Estimator(folder, manifest.estimator)
        model = Model(shared.encoder, load_heads(folder, manifest.estimator.partner))
        return Predictor(manifest, shared.manifest, shared.tokenizer, estimator, model, self._cache)

    def try_predictor(self, name: str) -> Predictor | BundleError:
        """The predictor of a model, or its error, which is also logged."""
        started_s = time.monotonic()
        try:
            return self.predictor(name)
        except BundleError as exc:
            if self._settings.log_level != "off":
                facts = {"model": name, "because": str(exc)}
                print(log_line(event="model-not-loaded", **facts, duration_ms=since_ms(started_s)))
            return exc


def load_models(settings: Settings) -> Models:
    """The models of the settings. A model that cannot be used raises its BundleError at its first use.

    Raises a BundleError when the default model cannot be used.
    """
    loader = _Loader(settings)
    default, *others = served_models(settings.model_dir, settings.models)
    first = loader.predictor(default)
    return Models({default: first, **{name: loader.try_predictor(name) for name in others}})


class SketchLog:
    """Log lines for `coldframe monitor`.

    The first answer of an environment is not counted, so that its cold start imports nothing for this.
    """

    def __init__(self, models: Models) -> None:
        self._models = models
        self._has_answered = False

    def lines(self) -> Iterator[str]:
        """A line for each model, once a minute. To be called before each answer."""
        if not self._has_answered:
            self._has_answered = True
            return
        self._models.observe()
        for observer in self._models.observers():
            yield from _sketch_lines(observer.hand_over())

    def last_lines(self) -> Iterator[str]:
        """A line for each model that has answered since its last sketch. To be called at the end."""
        for observer in self._models.observers():
            yield from _sketch_lines(observer.hand_over(interval_s=0.0))


def _sketch_lines(sketch: "Sketch | None") -> Iterator[str]:
    """The line of a sketch; none without a sketch."""
    if sketch is not None:
        covered_ms = round((sketch.end_s - sketch.start_s) * 1e3)
        yield log_line(event="sketch", sketch=sketch.as_json(), duration_ms=covered_ms)


def load_predictor(settings: Settings) -> Predictor:
    """The predictor of the default model, alone. Raises a BundleError when it cannot be used."""
    return _Loader(settings).predictor(served_models(settings.model_dir, settings.models)[0])


def chosen(settings: Settings, folder: Path | str | None, model: str | None) -> Settings:
    """The settings with a caller's folder of models and name of one; None keeps the setting."""
    arguments = {"model_dir": folder and Path(folder), "models": model}
    return replace(settings, **{name: value for name, value in arguments.items() if value})


def _share(settings: Settings, built: EncoderManifest) -> _SharedEncoder:
    if settings.device != "cpu" and (shared := _on_gpu(settings, built)):
        return shared
    folder = encoder_folder(settings.model_dir, built.name)
    manifest = built.with_windows(settings.max_windows) if settings.max_windows else built
    tokenizer, ms_per_token = TextWindows(folder, manifest.facts), MovingAverage(_MS_PER_TOKEN)
    encoder = load_encoder(settings, folder, manifest.facts, tokenizer, ms_per_token)
    return _SharedEncoder(manifest, tokenizer, encoder, ms_per_token)


def _on_gpu(settings: Settings, built: EncoderManifest) -> _SharedEncoder | None:
    """The encoder on a GPU; None where the CPU serves."""
    from coldframe.gpu.load import load_on_gpu

    loaded = load_on_gpu(settings, built)
    return loaded and _SharedEncoder(loaded.manifest, loaded.tokenizer, loaded.encoder, loaded.ms_per_token)
