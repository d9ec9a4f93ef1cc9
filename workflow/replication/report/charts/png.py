"""PNG files made smaller: the renderer compresses for speed, and notebooks are kept in Git."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def repack(png: bytes) -> bytes:
    """Return the same image with its data compressed as far as zlib can.

    Raises
    ------
    ValueError
        It is not a PNG, or a damaged one.
    """
    if not png.startswith(_SIGNATURE):
        raise ValueError("not a PNG: its signature is missing")
    chunks = list(_chunks(png))
    try:
        pixels = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    except zlib.error as error:
        raise ValueError(f"a damaged PNG: {error}") from None
    parts = [_SIGNATURE]
    written = False
    for kind, body in chunks:
        if kind != b"IDAT":
            parts.append(_chunk(kind, body))
        elif not written:
            parts.append(_chunk(kind, zlib.compress(pixels, 9)))
            written = True
    return b"".join(parts)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place < len(png):
        if place + 12 > len(png):
            raise ValueError("a damaged PNG: it ends within a chunk")
        (length,) = struct.unpack_from(">I", png, place)
        if place + 12 + length > len(png):
            raise ValueError("a damaged PNG: it ends within a chunk")
        yield png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        place += 12 + length


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + check
