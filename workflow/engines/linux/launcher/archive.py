"""Archives (cpio, "newc") for the kernel to unpack as its first file system; reproducible."""

from __future__ import annotations

_DEVICE, _FILE, _FOLDER = 0o020600, 0o100755, 0o040755


def _member(name: str, mode: int, content: bytes, device: tuple[int, int], number: int) -> bytes:
    encoded = name.encode() + b"\0"
    numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % n for n in numbers) + encoded
    return _pad(head) + _pad(content)


def _pad(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def archive(files: dict[str, bytes], *, console: bool = False) -> bytes:
    """Return an archive of executable files owned by root, dated 0; with a console on demand."""
    parts = []
    if console:
        parts = [("dev", _FOLDER, b"", (0, 0)), ("dev/console", _DEVICE, b"", (5, 1))]
    parts += [(name, _FILE, files[name], (0, 0)) for name in sorted(files)]
    parts += [("TRAILER!!!", 0, b"", (0, 0))]
    data = b"".join(_member(*part, number) for number, part in enumerate(parts, 1))
    return data + b"\0" * (-len(data) % 512)
