"""Seals: the hashes of what was made, so that nothing damaged or edited is taken for it.

Two forms, both as `sha256sum` writes and checks them. A file that a later stage reads has a record
beside it, `<file>.sha256`, with its hash and its place below the data folder: whoever copies a
study's results over another's takes a place along that is not theirs. A folder that is built or
shipped as a whole (a program, a kernel, the fixture, a report) has one record of all its files,
`seal.sha256`. What is read is checked then, and nowhere else.

Accidents are found, not forgers: whoever edits a file and its record together is believed.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

from replication.study.errors import InputError
from replication.study.files import atomic, digest_of, file_sha256, write_text

NAME = "seal.sha256"
#: What the record of a file adds to its name.
RECORD = ".sha256"
#: What a compiler leaves beside a program decides nothing any more.
_LEFT_BEHIND = (".o", ".d")
#: Places below the data folder, with what of the path tells a file from its namesakes.
_PLACE = re.compile(
    r"(?:^|/)((?:"
    r"design/(?:scenarios/)?[^/]+"
    r"|(?:batches|conformance|registered)/[^/]+"
    r"|(?:results|evaluation)/[^/]+/[^/]+"
    r"|maps/[^/]+/[^/]+"
    r"|sensitivity/(?:[^/]+/(?:(?:batches|usage)/)?)?[^/]+"
    r"))$"
)
#: How many folders above a file may hold the record of all.
_DEPTH = 5
#: By place: the rule that makes a file, and the command that runs the rule.
_MAKERS = (
    (
        r"sensitivity/.*|.*\.sensitivity\.ipynb|(explanations|explained_cells)\.csv",
        "",
        "make sensitivity",
    ),
    (r"maps/.*", "explore_map", "make maps"),
    (r"maps\.csv", "merge_maps", "make maps"),
    (r"design/.*", "design_study", "make report"),
    (r"batches/.*", "simulate_batch", "make report"),
    (r"results/.*", "collect_results", "make report"),
    (r"evaluation/.*/own_data\.csv", "judge_own_data", "make report"),
    (r"evaluation/.*", "evaluate_study", "make report"),
    (
        r"(cells|claims|claim_flags|own_data|audit)\.(csv|parquet)",
        "merge_evaluations",
        "make report",
    ),
    (r"agreement.*", "compare_engines", "make report"),
    (r"trace_.*", "compare_traces", "make report"),
    (r"conformance/.*", "run_conformance", "make report"),
    (r"conformance.*", "merge_conformance", "make report"),
    (r"provenance\.json", "write_provenance", "make report"),
    (r".*\.ipynb", "execute_notebook", "make report"),
    (r"bench\.json", "", "make bench"),
    (r"reliability\.json", "", "make test-faults"),
)


@contextlib.contextmanager
def sealed(path: Path) -> Iterator[Path]:
    """Give a temporary path, as `atomic` does; leave the record of what is written to it.

    Whenever it is killed, file and record fit: until the file has taken its place, its record
    names the old one and the new one.
    """
    record = record_of(path)
    with atomic(path) as temporary:
        yield temporary
        line = f"{file_sha256(temporary)}  {place(path)}\n"
        replaced = record.read_text(encoding="utf-8") if path.exists() and record.exists() else ""
        write_text(record, line + replaced)
    if replaced:
        write_text(record, line)


def write_sealed(path: Path, text: str) -> None:
    """Write `text` as `write_text` does, with its record."""
    with sealed(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def open_sealed(path: Path) -> io.BytesIO:
    """Return the content of a file, checked as by `check`."""
    content = path.read_bytes()
    _require(path, digest_of(content))
    return io.BytesIO(content)


def read_sealed(path: Path) -> str:
    """Return the text of a file, checked as by `check`."""
    return open_sealed(path).getvalue().decode("utf-8")


def check(path: Path) -> None:
    """Require that a file is what its maker wrote, at the place for which it was written.

    Raises
    ------
    InputError
        It has no record, or another one; the message says what makes the file anew.
    OSError
        It cannot be read.
    """
    _require(path, file_sha256(path))


def record_of(path: Path) -> Path:
    """Return the record of a file, whether or not it is there."""
    return path.with_name(path.name + RECORD)


def place(path: Path) -> str:
    """Return a file's place below the data folder: the same wherever that folder is."""
    found = _PLACE.search(path.absolute().as_posix())
    return found[1] if found else path.name


def remedy(path: Path) -> str:
    """Return how a damaged file is made anew."""
    known = place(path)
    for pattern, rule, command in _MAKERS:
        if re.fullmatch(pattern, known):
            return f"remove it and run `{command}`" + (f" (rule {rule})" if rule else "")
    return "remove it and make it anew"


def _require(path: Path, sha256: str) -> None:
    """Raise InputError unless the record of a file, or of a folder above it, has this hash."""
    record = record_of(path)
    if record.is_file():
        ours = path.absolute().as_posix()
        for digest, known in _lines(record):
            if digest == sha256 and f"/{ours}".endswith(f"/{known}"):
                return
        raise InputError(
            f"{path}: is not what was written there (edited, damaged, or another file's copy): "
            f"{remedy(path)}"
        )
    for folder in path.absolute().parents[:_DEPTH]:
        record = folder / NAME
        if record.is_file():
            known = path.absolute().relative_to(folder).as_posix()
            if (sha256, known) in _lines(record):
                return
            raise InputError(
                f"{path}: is not what {record} says (edited or damaged): restore both from where "
                "they came, such as git"
            )
    raise InputError(f"{path}: has no record {record_of(path).name}: {remedy(path)}")


def _lines(record: Path) -> list[tuple[str, str]]:
    """Return hash and name of each line; what is no such line matches nothing."""
    text = record.read_text(encoding="utf-8", errors="replace")
    pairs = [line.partition("  ") for line in text.splitlines()]
    return [(digest, name) for digest, _, name in pairs]


def seal(folder: Path) -> None:
    """Write one record of all files of a folder, `seal.sha256`."""
    lines = [f"{sha256}  {name}\n" for name, sha256 in _hashes(folder).items()]
    write_text(folder / NAME, "".join(lines))


def check_seal(folder: Path) -> None:
    """Require that the files in `folder` are what they were when it was sealed, if it was.

    Raises
    ------
    InputError
        One of them is gone or has changed; the message says what to do.
    """
    for name in _broken(folder):
        raise InputError(
            f"{folder / name}: is not what was built (damaged?): remove data/reproduced/engines "
            "and run again"
        )


def require_whole(folder: Path, remedy: str) -> None:
    """Require that a folder was sealed, be it empty, and that its files are what they were then.

    Raises
    ------
    InputError
        It is not; the message ends with the remedy.
    """
    is_sealed = (folder / NAME).is_file()
    empty = is_sealed and not (folder / NAME).read_bytes() and not _hashes(folder)
    broken = [] if empty else _broken(folder) if is_sealed else [NAME]
    if broken:
        raise InputError(f"{folder / broken[0]}: is gone, edited or damaged: {remedy}")


def check_kernels(cache: Path) -> Iterator[str]:
    """Remove damaged kernels from the cache and seal those that are new; yield what was done.

    The engine's build makes a kernel anew that is not there.
    """
    for kernel in sorted(cache.glob("*/linux")):
        folder = kernel.parent
        if not (folder / NAME).is_file():
            seal(folder)
        elif _broken(folder):
            for name in (kernel.name, NAME):
                (folder / name).unlink()
            yield f"linux: the kernel in {folder} was damaged: removed, to be built anew"


def whole_or_unsealed(folder: Path) -> Path:
    """Return the path of a folder's seal, which is removed if the seal is broken.

    A rule with that output then runs again; nothing else is touched.
    """
    path = folder / NAME
    if _broken(folder):
        path.unlink()
    return path


def _hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that decides what runs, or is read, by its name."""
    return {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix not in (*_LEFT_BEHIND, RECORD)
        and not path.name.startswith(".")
    }


def _broken(folder: Path) -> list[str]:
    """Return the sealed files of `folder` that are gone or have changed; none if it has no seal."""
    record = folder / NAME
    if not record.is_file():
        return []
    lines = _lines(record)
    if not lines:
        return [NAME]
    return [name for sha256, name in lines if _readable_sha256(folder / name) != sha256]


def _readable_sha256(path: Path) -> str:
    """Return the hash of a file; empty where there is none that can be read."""
    try:
        return file_sha256(path)
    except (OSError, ValueError):
        return ""
