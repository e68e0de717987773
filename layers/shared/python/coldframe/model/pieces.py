"""Unigram's pieces and their scores: a trie in a mapped file, of which a text reads only its own nodes.

The library reads 250,000 pieces for its first text, which takes a second and a half. Here a search proceeds
byte by byte. A node's children are adjacent in the file, so one search among their labels finds a child.

The file: a line of JSON, then, as little-endian arrays, the score of each id (float64), the first child
of each node and one more (uint32), the id of the piece that ends at each node or -1 (int32), the label of
each node (uint8); then the plain characters in UTF-8. Nodes are numbered level by level from the root.
"""

import json
import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from coldframe.errors import BundleCorrupt
from coldframe.model.files import PIECES, REBUILD, map_file

_NO_PIECE = -1
_LABELS = [bytes([label]) for label in range(256)]


class Unknown(NamedTuple):
    """The token for characters that no piece covers, and the score of one such character."""

    id: int
    score: float


class Pieces:
    """The pieces of a Unigram tokenizer. Safe for threads: read only.

    plain: characters that the tokenizer's normaliser leaves unchanged in any sequence, with white space.
    special: names of tokens that the library finds in a text before it looks for pieces.
    """

    def __init__(self, content: bytes | mmap.mmap) -> None:
        """Raises BundleCorrupt when the content is not a file of pieces."""
        try:
            start = content.find(b"\n") + 1
            header = json.loads(content[:start])
            nodes, ids = header["nodes"], header["ids"]
            self.unknown = Unknown(header["unknown"], header["unknown_score"])
            self.special: tuple[str, ...] = tuple(header["special"])
            ends = [start]
            for size in (8 * ids, 4 * (nodes + 1), 4 * nodes, nodes):
                ends.append(ends[-1] + size)
            self.plain = frozenset(content[ends[4] :].decode())
            view = memoryview(content)
            self._scores = view[ends[0] : ends[1]].cast("d")
            self._first = view[ends[1] : ends[2]].cast("I")
            self._piece = view[ends[2] : ends[3]].cast("i")
        except (ValueError, KeyError, TypeError, IndexError) as exc:
            raise BundleCorrupt(f"{PIECES} cannot be read: {exc}. {REBUILD}") from exc
        self._labels_start, self._find = ends[3], content.find

    def prefixes(self, word: bytes, start: int) -> list[tuple[int, int, float]]:
        """End, id and score of each piece that begins at `start`, short ones first."""
        first, labels, find = self._first, self._labels_start, self._find
        matches = []
        node = 0
        for end in range(start + 1, len(word) + 1):
            low, high = first[node], first[node + 1]
            node = find(_LABELS[word[end - 1]], labels + low, labels + high) - labels
            if node < low:
                break
            piece = self._piece[node]
            if piece != _NO_PIECE:
                matches.append((end, piece, self._scores[piece]))
        return matches

    def id_of(self, piece: bytes) -> int | None:
        """The id of a whole piece; None for any other string."""
        matches = self.prefixes(piece, 0)
        return matches[-1][1] if matches and matches[-1][0] == len(piece) else None


def load_pieces(folder: Path) -> Pieces:
    """The pieces of the encoder in `folder`. Raises BundleMissing or BundleCorrupt."""
    return Pieces(map_file(folder, PIECES))


def write_pieces(
    pieces: Mapping[str, int],
    scores: Sequence[float],
    unknown: Unknown,
    special: Iterable[str],
    plain: Iterable[str],
) -> bytes:
    """The content of the file. scores: by id. Pieces with characters that are not plain are left out."""
    characters = frozenset(plain) | {"▁"}
    plain_pieces = {
        piece.encode(): number for piece, number in pieces.items() if characters.issuperset(piece)
    }
    first, ends, labels = _trie(plain_pieces)
    header = {"ids": len(scores), "nodes": len(labels), "unknown": unknown.id, "unknown_score": unknown.score}
    line = json.dumps({**header, "special": sorted(special)}, separators=(",", ":")).encode()
    line += b" " * (-(len(line) + 1) % 8) + b"\n"  # aligned for float64
    arrays = (
        struct.pack(f"<{len(scores)}d", *scores),
        struct.pack(f"<{len(first)}I", *first),
        struct.pack(f"<{len(ends)}i", *ends),
        bytes(labels),
    )
    return b"".join((line, *arrays, "".join(sorted(plain)).encode()))


def _trie(pieces: Mapping[bytes, int]) -> tuple[list[int], list[int], list[int]]:
    """First child of each node and one more, the id at each node, the label of each node."""
    names = sorted(pieces)
    first, ends, labels = [], [], [0]
    level = [(0, len(names))]  # for each node: the names that pass through it
    depth = 0
    while level:
        below = []
        for low, high in level:
            first.append(len(labels))
            is_piece = low < high and len(names[low]) == depth
            ends.append(pieces[names[low]] if is_piece else _NO_PIECE)
            low += is_piece
            while low < high:
                label, child = names[low][depth], low
                while low < high and names[low][depth] == label:
                    low += 1
                labels.append(label)
                below.append((child, low))
        level, depth = below, depth + 1
    return [*first, len(labels)], ends, labels
