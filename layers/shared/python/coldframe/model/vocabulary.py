"""Tokens and their ids: a sorted file, searched until reading all of it would have been cheaper."""

import mmap
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from coldframe.errors import BundleCorrupt
from coldframe.model.files import VOCABULARY, map_file

_MAX_SEARCHES = 250  # searches that take as long as reading the file: docs/decisions/0024


class Vocabulary:
    """Ids of tokens. An environment's first text needs a dozen of them, not a dictionary of 30,000.

    get: the id of a token, None for a string that is not a token. A repeated token costs a look into a
    dictionary, and no call in Python.

    Safe for threads, without a lock: `None` is returned only once the whole table is read, and threads that
    search for one token, or read the table at once, get equal results.
    """

    def __init__(self, content: bytes | mmap.mmap) -> None:
        """content: lines of a token, a space and its id, sorted as bytes, each with a line end."""
        self.get: Callable[[str], int | None] = _Ids(content).__getitem__

    def __getitem__(self, token: str) -> int:
        """The id of a required token. Raises BundleCorrupt if it is missing."""
        token_id = self.get(token)
        if token_id is None:
            raise BundleCorrupt(f"{VOCABULARY} has no token {token}. Run `coldframe build`.")
        return token_id


class _Ids(dict[str, int | None]):
    """Ids of the tokens looked up so far; None for strings that are not tokens."""

    def __init__(self, content: bytes | mmap.mmap) -> None:
        super().__init__()
        self._content = content
        self._is_whole = False

    def __missing__(self, token: str) -> int | None:
        """Searches for a new token; after many searches it reads all tokens."""
        if not self._is_whole and len(self) >= _MAX_SEARCHES:
            self.update(_read_all(self._content))
            self._is_whole = True  # not earlier: until then a thread that misses a token searches for it
        if self._is_whole:
            return self.get(token)  # a second look: another thread may have added the token
        self[token] = token_id = self._search(token.encode())
        return token_id

    def _search(self, token: bytes) -> int | None:
        """Binary search over the lines."""
        sought = token + b" "
        low, high = 0, len(self._content)  # each at the start of a line
        while low < high:
            start = self._content.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._content.find(b"\n", start) + 1
            line = self._content[start:end]
            if line.startswith(sought):
                return int(line[len(sought) :])
            if line < sought:
                low = end
            else:
                high = start
        return None


def load_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary of the bundle in `folder`. Raises BundleMissing or BundleCorrupt."""
    content = map_file(folder, VOCABULARY)
    if content[-1:] != b"\n":
        raise BundleCorrupt(f"{VOCABULARY} does not end with a line end. Run `coldframe build`.")
    return Vocabulary(content)


def mark_fragments(folder: Path, tokenizer: str) -> bytearray:
    """1 at the id of each token that continues a word, else 0. Raises BundleMissing or BundleCorrupt.

    tokenizer: "wordpiece", whose such tokens begin with ##, or "unigram", whose other tokens begin with ▁.
    """
    content = map_file(folder, VOCABULARY)[:]
    continues = rb"(?!\xe2\x96\x81)" if tokenizer == "unigram" else rb"##"
    marks = bytearray(1 + max(map(int, re.findall(rb" (\d+)\n", content)), default=0))
    for number in re.findall(rb"(?m)^" + continues + rb"[^ \n]* (\d+)$", content):
        marks[int(number)] = True
    return marks


def write_vocabulary(ids: Mapping[str, int]) -> bytes:
    """The content of the file. No token contains a space or a line end."""
    return b"".join(sorted(f"{token} {number}\n".encode() for token, number in ids.items()))


def _read_all(content: bytes | mmap.mmap) -> dict[str, int]:
    pairs = (line.split(" ") for line in content[:].decode().split("\n")[:-1])
    return {token: int(number) for token, number in pairs}
