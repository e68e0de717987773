"""Mixes of texts that arrive together: long posts, headlines, one long text among many short ones."""

import json
import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from coldframe.errors import ColdframeError
from local.paths import ROOT

_BUILD_PYTHON = ROOT / ".venv-build" / "bin" / "python"
_SENTENCES = Path(__file__).with_name("sentences.txt")
_HEADLINE_WORDS = (2, 14)
_POST_WORDS = (8, 1000)

# The data set is read where scikit-learn is, in the build environment.
_READ_NEWSGROUPS = r"""
import json, re
from layers.model.data import load_split
split = load_split("test")
subject = re.compile(r"^Subject:[ \t]*(?:re:[ \t]*)*(.+)$", re.MULTILINE | re.IGNORECASE)
found = [subject.search(text) for text in split.full]
print(json.dumps([split.stripped, [line.group(1) for line in found if line]]))
"""


class TextsMissing(ColdframeError):
    """The texts to measure with cannot be had."""


@dataclass(frozen=True)
class Corpus:
    """Where the texts are from, long ones and short ones, in random order."""

    source: str
    posts: list[str]
    headlines: list[str]


def load_corpus(seed: int) -> Corpus:
    """Posts and subject lines of 20 Newsgroups where COLDFRAME_DATA leads to it, else texts of our own."""
    source = random.Random(seed)
    if "COLDFRAME_DATA" in os.environ and _BUILD_PYTHON.exists():
        posts, headlines = _newsgroups()
        source.shuffle(posts)
        source.shuffle(headlines)
        return Corpus("20 Newsgroups, test split: stripped posts and subject lines", posts, headlines)
    sentences = [line for line in _SENTENCES.read_text().splitlines() if line]
    posts = [_own_text(sentences, _POST_WORDS, source) for _ in range(2000)]
    headlines = [_own_text(sentences, _HEADLINE_WORDS, source) for _ in range(4000)]
    return Corpus("sentences of our own", posts, headlines)


def _own_text(sentences: list[str], words: tuple[int, int], source: random.Random) -> str:
    """Sentences, cut where a length is reached that is drawn evenly in its logarithm."""
    low, high = words
    count = round(low * (high / low) ** source.random())
    chosen: list[str] = []
    while len(chosen) < count:
        chosen += source.choice(sentences).split()
    return " ".join(chosen[:count])


def _newsgroups() -> tuple[list[str], list[str]]:
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'layers' / 'shared' / 'python'}"}
    command = [str(_BUILD_PYTHON), "-c", _READ_NEWSGROUPS]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    if done.returncode:
        raise TextsMissing(f"20 Newsgroups cannot be read: {done.stderr.strip().splitlines()[-1]}")
    posts, headlines = json.loads(done.stdout)
    return posts, headlines
