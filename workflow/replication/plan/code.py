"""Code: hashes over modules and all that they import, by which a rule knows that it has changed."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from replication.study.files import sha256_of

#: The folder that holds the package and the bench.
SOURCES = Path(__file__).parents[2]
PACKAGE = "replication"
TEMPLATES = "report/templates"
_IMPORT = re.compile(r"^\s*from ((?:replication|bench)[\w.]*) import (.+)$", re.MULTILINE)
#: A template's name in quotation marks; behind an equals sign it is a link to the page.
_TEMPLATE = re.compile(r'(?<!=)"(\w+\.html)"')


def code_hash(module: str, *patterns: str) -> str:
    """Return a hash over a module, all it imports and the package's files that match."""
    files = [p for pattern in patterns for p in (SOURCES / PACKAGE).glob(pattern) if p.is_file()]
    return sha256_of(*closure(module), *files)[:16]


def page_hash(module: str) -> str:
    """Return a hash over a module of the report, all it imports and the templates it may fill."""
    files = [*closure(module), SOURCES / PACKAGE / "report/render.py"]
    return sha256_of(*files, *_templates(files))[:16]


def closure(module: str) -> list[Path]:
    """Return the files of a module, by its dotted name, and of all of ours that it imports."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        path = SOURCES / f"{name.replace('.', '/')}.py"
        try:
            state = path.stat()
        except OSError:
            continue
        found[name] = path
        waiting += _imports(path, state.st_mtime_ns, state.st_size)
    return [found[name] for name in sorted(found)]


def _templates(files: list[Path]) -> list[Path]:
    """Return the templates that the files name, and those that these name."""
    folder = SOURCES / PACKAGE / TEMPLATES
    found: dict[str, Path] = {}
    waiting = list(files)
    while waiting:
        for name in _TEMPLATE.findall(waiting.pop().read_text(encoding="utf-8")):
            if name not in found and (folder / name).is_file():
                found[name] = folder / name
                waiting.append(folder / name)
    return list(found.values())


@functools.cache
def _imports(path: Path, modified_ns: int, size_bytes: int) -> list[str]:
    """Return the modules of ours that a source file imports, and the names that may be modules.

    Each state of a file is read once. By the form of the line, in texts that are handed to another
    Python too; parsing all modules would take a fifth of a rerun with nothing to do.
    """
    names = []
    for module, listed in _IMPORT.findall(path.read_text(encoding="utf-8")):
        parts = [part.split(" as ")[0] for part in listed.split(", ")]
        names += [module, *(f"{module}.{part}" for part in parts)]
    return names
