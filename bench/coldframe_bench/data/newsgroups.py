"""20 Newsgroups, read where scikit-learn is: in the build environment."""

import json
import os
import subprocess
from functools import cache
from typing import NamedTuple

from coldframe.errors import ColdframeError
from coldframe_local.paths import BUILD_PYTHON, ROOT, build_environ

_READ = r"""
import json, re
from coldframe_training.training_data.data import load_split
split = load_split("test")
subject = re.compile(r"^Subject:[ \t]*(?:re:[ \t]*)*(.+)$", re.MULTILINE | re.IGNORECASE)
found = [subject.search(text) for text in split.full]
subjects = [line.group(1) for line in found if line]
print(json.dumps([split.stripped, subjects, [split.labels[row] for row in split.target]]))
"""


class TextsMissing(ColdframeError):
    """The texts to measure with cannot be had."""


class Newsgroups(NamedTuple):
    """The test split: stripped posts, the subject lines of all, and the label of each post."""

    posts: list[str]
    subjects: list[str]
    labels: list[str]


def is_available() -> bool:
    """Whether COLDFRAME_DATA leads to the data set, and there is something to read it with."""
    return "COLDFRAME_DATA" in os.environ and BUILD_PYTHON.exists()


@cache
def read_newsgroups() -> Newsgroups:
    """Raises TextsMissing when the data set cannot be read."""
    command = [str(BUILD_PYTHON), "-c", _READ]
    done = subprocess.run(command, cwd=ROOT, env=build_environ(), capture_output=True, text=True)
    if done.returncode:
        raise TextsMissing(f"20 Newsgroups cannot be read: {done.stderr.strip().splitlines()[-1]}")
    return Newsgroups(*json.loads(done.stdout))
