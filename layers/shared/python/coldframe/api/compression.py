"""gzip bodies, decompressed up to a limit."""

import zlib
from collections.abc import Iterator

from coldframe.errors import Malformed, TooLarge

_GZIP = 16 + zlib.MAX_WBITS


class Gunzip:
    """The content of one gzip member, in pieces, as its bytes arrive.

    Decompression stops soon after `max_bytes`, which bounds the cost of a small body that expands to
    gigabytes.
    A second member is refused: clients send one, and a body of many empty members would be slow to read.
    """

    def __init__(self, max_bytes: int, piece_bytes: int) -> None:
        """max_bytes: most bytes of the whole content. piece_bytes: most bytes of each piece."""
        self._stream = zlib.decompressobj(_GZIP)
        self._max_bytes = max_bytes
        self._piece_bytes = piece_bytes
        self._content_bytes = self._extra_bytes = 0

    def add(self, chunk: bytes) -> Iterator[bytes]:
        """Pieces that a chunk of the body decompresses to. Raises TooLarge or Malformed."""
        if self._stream.eof:
            self._extra_bytes += len(chunk)
            return
        is_full = True
        while is_full and not self._stream.eof:
            piece = self._decompress(chunk)
            chunk, is_full = self._stream.unconsumed_tail, len(piece) == self._piece_bytes
            self._content_bytes += len(piece)
            if self._content_bytes > self._max_bytes:
                raise TooLarge(
                    f"The body has more than {self._max_bytes} bytes when decompressed, expected at most"
                    " that. Send it in parts."
                )
            yield piece
        self._extra_bytes += len(self._stream.unused_data)

    def end(self) -> None:
        """Checks the end of the body. Raises Malformed if the body is truncated or has bytes after it."""
        if not self._stream.eof:
            raise Malformed("The gzip body is cut off before its end. Send all of it.")
        if self._extra_bytes:
            raise Malformed(
                f"Found {self._extra_bytes} bytes after the end of the gzip body. Send one gzip member."
            )

    def _decompress(self, chunk: bytes) -> bytes:
        try:
            return self._stream.decompress(chunk, self._piece_bytes)
        except zlib.error as exc:
            raise Malformed(
                "The body is not gzip, as its Content-Encoding says. Compress it, or leave the header out."
            ) from exc


def gunzip(body: bytes, max_bytes: int) -> bytes:
    """The content of a whole body. Raises TooLarge or Malformed."""
    stream = Gunzip(max_bytes, max_bytes + 1)
    content = b"".join(stream.add(body))
    stream.end()
    return content
