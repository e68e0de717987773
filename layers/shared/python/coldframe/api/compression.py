"""gzip bodies, decompressed up to a limit."""

import zlib

from coldframe.errors import Malformed, TooLarge

_GZIP = 16 + zlib.MAX_WBITS


def gunzip(body: bytes, max_bytes: int) -> bytes:
    """The content of one gzip member.

    Stops one byte past `max_bytes`, so a small body that would fill the memory costs
    no more than a large honest one. A second member is refused: clients send one, and a
    body of many empty ones would be slow to read.
    Raises TooLarge or Malformed.
    """
    stream = zlib.decompressobj(_GZIP)
    try:
        content = stream.decompress(body, max_bytes + 1)
    except zlib.error as exc:
        raise Malformed(
            "The body is not gzip, as its Content-Encoding says. Compress it, or leave the header out."
        ) from exc
    if len(content) > max_bytes:
        raise TooLarge(
            f"The body has more than {max_bytes} bytes when decompressed, expected at most that."
            " Send it in parts."
        )
    if not stream.eof:
        raise Malformed("The gzip body is cut off before its end. Send all of it.")
    if stream.unused_data:
        raise Malformed(
            f"Found {len(stream.unused_data)} bytes after the end of the gzip body. Send one gzip member."
        )
    return content
