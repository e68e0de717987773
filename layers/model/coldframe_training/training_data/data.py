"""20 Newsgroups as the heads see it."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_20newsgroups

_STRIPPED = ("headers", "footers", "quotes")


@dataclass(frozen=True)
class Split:
    """Documents of one split, both as they were posted and as callers send them."""

    full: list[str]
    stripped: list[str]
    target: NDArray[np.int64]  # (n,)
    labels: list[str]


def load_split(subset: str) -> Split:
    """`train` or `test`, by date. From the folder COLDFRAME_DATA if set, else downloaded.

    Ends the program with what to do when the data set cannot be had.
    """
    folder = os.environ.get("COLDFRAME_DATA")
    try:
        full, stripped = (
            fetch_20newsgroups(
                data_home=folder,
                download_if_missing=folder is None,
                subset=subset,
                shuffle=False,
                remove=remove,
            )
            for remove in ((), _STRIPPED)
        )
    except OSError as exc:
        hint = "Set COLDFRAME_DATA to a folder that holds scikit-learn's 20news-bydate_py3.pkz."
        raise SystemExit(f"Error: 20 Newsgroups cannot be had: {exc}. {hint}") from exc
    return Split(full.data, stripped.data, full.target.astype(np.int64), list(full.target_names))


def threads_of(full_texts: Sequence[str]) -> NDArray[np.int64]:
    """A number per document, the same for the messages of one discussion.

    The test split lies after the training split in time, so it shares few
    discussions with it. A validation split that cuts through discussions would be too easy.
    """
    subjects = [_subject(text) for text in full_texts]
    return np.unique(subjects, return_inverse=True)[1].astype(np.int64)


def _subject(text: str) -> str:
    match = re.search(r"^Subject:\s*(.*)$", text, re.MULTILINE)
    subject = match.group(1).strip().lower() if match else ""
    return re.sub(r"^(re|fwd?)\s*(\[\d+\])?\s*:\s*", "", subject).strip()
