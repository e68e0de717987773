"""Runs inside a traced sample, before the function: times its stages and counts its calls.

The parent gives this source to the child, so that a sample imports nothing of `bench`. It
imports only what every interpreter has loaded already: what the function imports must be
the function's own cost. Libraries are wrapped when the function imports them.
"""

import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

stages_ms: dict[str, float] = {}
calls: dict[str, int] = {}


def timed(
    stage: str, call: Callable[..., Any], count: Callable[..., int] | None = None
) -> Callable[..., Any]:
    """The same call, which adds its time to `stage` and, with `count`, what it was asked to do."""

    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        start_s = time.perf_counter()
        try:
            return call(*arguments, **keywords)
        finally:
            stages_ms[stage] = stages_ms.get(stage, 0.0) + (time.perf_counter() - start_s) * 1e3
            if count is not None:
                calls[stage] = calls.get(stage, 0) + count(*arguments)

    return wrapper


class TimedTokenizer:
    """Stands where `tokenizers.Tokenizer` did, which has no attributes to set."""

    inner: Any = None

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._tokenizer, name)
        if name.startswith("encode"):
            return timed("tokenize", attribute, lambda texts: 1 if isinstance(texts, str) else len(texts))
        return attribute

    @classmethod
    def load(cls, name: str) -> Callable[..., Any]:
        """`from_file`, `from_buffer` or `from_str` of the original."""
        make = timed("tokenizer", getattr(cls.inner, name))
        return lambda *arguments: cls(make(*arguments))


def wrap_tokenizers(module: ModuleType) -> None:
    """Loading a tokenizer, and each text that it cuts."""
    TimedTokenizer.inner = module.Tokenizer
    for name in ("from_file", "from_buffer", "from_str"):
        setattr(TimedTokenizer, name, staticmethod(TimedTokenizer.load(name)))
    module.Tokenizer = TimedTokenizer  # type: ignore[attr-defined]


def wrap_encoder(module: ModuleType) -> None:
    """Waiting for the encoder's graph, its first pass, which touches the weights, and the others."""
    encoder = module.Encoder
    encoder.__init__ = timed("session", encoder.__init__)
    later = timed("encode", encoder.encode)
    first = timed("first_run", encoder.encode)

    def encode(*arguments: Any, **keywords: Any) -> Any:
        calls["passes"] = calls.get("passes", 0) + 1
        return (first if calls["passes"] == 1 else later)(*arguments, **keywords)

    encoder.encode = encode


def wrap_heads(module: ModuleType) -> None:
    """Reading a head's file, and each prediction by it."""
    load = timed("heads", module.load_head)

    def load_head(*arguments: Any, **keywords: Any) -> Any:
        head = load(*arguments, **keywords)
        head.predict = timed("heads", head.predict, lambda rows: 1)
        return head

    module.load_head = load_head  # type: ignore[attr-defined]


def wrap_calls(*calls: tuple[str, str, bool]) -> Callable[[ModuleType], None]:
    """Functions and methods of a module by name, each with its stage, and whether its calls count."""

    def wrap(module: ModuleType) -> None:
        for path, stage, counts in calls:
            owner, _, name = path.rpartition(".")
            holder = getattr(module, owner) if owner else module
            count = (lambda *arguments: 1) if counts else None
            setattr(holder, name, timed(stage, getattr(holder, name), count))

    return wrap


HOOKS = {
    "coldframe.model.wordpiece": wrap_calls(("PlainWordpiece.ids", "tokenize", True)),
    "coldframe.model.vocabulary": wrap_calls(("load_vocabulary", "vocabulary", False)),
    "tokenizers": wrap_tokenizers,
    "coldframe.model.encoder": wrap_encoder,
    "coldframe.model.heads": wrap_heads,
    "coldframe.model.estimator": wrap_calls(
        ("Estimator.__init__", "estimator", False), ("Estimator.evidence", "estimator", True)
    ),
}


class Hooked:
    """Finds what the other finders find, and wraps it once it is loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        hook = HOOKS.get(name)
        finders = [finder for finder in sys.meta_path if finder is not Hooked] if hook else []
        specs = (finder.find_spec(name, path, target) for finder in finders)
        spec: Any = next((spec for spec in specs if spec is not None), None)
        if hook is not None and spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                hook(module)

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Hooked)
