"""Files with series of opportunities to send, in Mahimahi's format.

A line is a time in whole milliseconds at which packets of 1500 bytes together may leave. Times do
not decrease. After the last the series starts again.
"""

import functools
import lzma
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from replication.base.errors import InputError, quoted
from replication.base.files import digest_of
from replication.study.link import MOST_OPPORTUNITIES, Opportunities, SeriesFile

_LIST: TypeAdapter[list[int]] = TypeAdapter(Opportunities)
#: Most bytes of a file's text.
_MOST_BYTES = 11 * MOST_OPPORTUNITIES


def read_series(series: list[int] | SeriesFile, root: Path) -> list[int]:
    """Return a series, read from its file below `root` if it is in one.

    Raises
    ------
    InputError
        The file is missing, differs from its hash or has a wrong line; the message names it.
    """
    if isinstance(series, list):
        return series
    return [*_read(root / series.file, series.sha256)]


@functools.lru_cache(maxsize=8)
def _read(path: Path, sha256: str) -> tuple[int, ...]:
    content = _content(path)
    if (digest := digest_of(content)) != sha256:
        raise InputError(
            f"{path}: its sha256 is {digest}, not {sha256}; restore the file, or write its hash "
            "where the series is named",
            (),
        )
    try:
        text = _text(content) if path.suffix == ".xz" else content
    except (lzma.LZMAError, EOFError):
        raise InputError(f"{path}: xz cannot unpack it; compress the series again") from None
    if len(text) > _MOST_BYTES:
        raise InputError(f"{path}: has more than {_MOST_BYTES} bytes of text; shorten the series")
    numbers: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}, line {number}"
        if not (line.isdigit() and len(line) <= len(str(10**9))):
            shown = quoted(line.decode(errors="replace"))
            raise InputError(f"{where}: {shown} is not a time in whole milliseconds; correct it")
        if numbers and int(line) < numbers[-1]:
            raise InputError(f"{where}: {int(line)} follows {numbers[-1]}; times must not decrease")
        numbers.append(int(line))
    try:
        return tuple(_LIST.validate_python(numbers, strict=True))
    except ValidationError as error:
        raise InputError(f"{path}: {error.errors()[0]['msg']}; correct the series") from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror
        raise InputError(
            f"{path}: {reason}; give the path of a series of opportunities", ()
        ) from None


def _text(content: bytes) -> bytes:
    unpacker = lzma.LZMADecompressor()
    text = unpacker.decompress(content, _MOST_BYTES + 1)
    if unpacker.unused_data or (not unpacker.eof and len(text) <= _MOST_BYTES):
        raise EOFError
    return text
