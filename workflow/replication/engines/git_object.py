"""Git's own hashes of files and folders, by which a release is known whoever packed it."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path


def git_object(path: Path) -> str:
    """Return the name that git gives a file (a blob) or a folder (a tree), 40 hex digits.

    The format is git's: `<kind> <length>`, a zero byte and the content; a tree's content has mode,
    name and hash of each entry, folders sorted as if their names ended in a slash (Git's manual,
    gitformat-pack and "Git Objects" in Pro Git). Empty folders are no part of a tree.
    """
    return _hash(path).hex()


def _hash(path: Path) -> bytes:
    if path.is_symlink():
        return _named("blob", str(path.readlink()).encode())
    if path.is_dir():
        return _tree(path)
    return _named("blob", path.read_bytes())


def _tree(folder: Path) -> bytes:
    entries = []
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            continue
        mode = _mode(path)
        entries.append((path.name + "/" * (mode == "40000"), mode, path))
    content = b"".join(
        f"{mode} {path.name}".encode() + b"\0" + _hash(path) for _, mode, path in sorted(entries)
    )
    return _named("tree", content)


def _mode(path: Path) -> str:
    if path.is_symlink():
        return "120000"
    if path.is_dir():
        return "40000"
    return "100755" if path.stat().st_mode & stat.S_IXUSR else "100644"


def _named(kind: str, content: bytes) -> bytes:
    return hashlib.sha1(f"{kind} {len(content)}".encode() + b"\0" + content).digest()
