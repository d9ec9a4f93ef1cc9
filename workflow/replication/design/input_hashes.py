"""Hashes of the inputs of results: code by rooms, studies, published numbers, settings.

Hashes of studies and settings are over values, not files, and without words for readers, so that
neither a new layout of a file nor a reworded title makes hours of results outdated.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from replication.base.files import digest_of, read_json, sha256_of
from replication.design.config import load_study, study_files
from replication.engines.catalogue import ENGINES, chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.study.published import published_path, read_published
from replication.study.scenario import canonical_json

#: Keys of a study that determine its runs and verdicts.
_DECISIVE = {"parameters", "substitutions", "experiments", "tables", "claims"}
PACKAGE = Path(__file__).parents[1]
_DESIGN = ("design/config.py", "design/design.py", "design/textbook.py")
_SIMULATE = ("base", "study", "engines", "simulate", *_DESIGN)
_JUDGE = (*_SIMULATE, "metrics", "verdicts", "compare", "explore")
_REPORT = ("report", "lab.py")


class Code(NamedTuple):
    """Hashes of the code of runs, of verdicts, and of notebooks and pages."""

    simulate: str
    judge: str
    report: str


@functools.cache
def code() -> Code:
    """Return the hashes of this code."""
    return Code(*(_hash(rooms) for rooms in (_SIMULATE, _JUDGE, _REPORT)))


def _hash(rooms: tuple[str, ...]) -> str:
    paths = []
    for room in rooms:
        paths += [PACKAGE / room, *(PACKAGE / room).rglob("*")]
    return content_hash(*(path for path in paths if path.suffix != ".pyc"))


def content_hash(*paths: Path | str) -> str:
    """Return a hash of those files that exist: a rule's parameter that reruns it."""
    return sha256_of(*map(Path, paths))[:16]


def study_inputs(*studies: str) -> list[str]:
    """Return the files of studies, below the project's folder."""
    paths: list[Path] = []
    for study in studies:
        paths += study_files(Path(), study)
    return [path.as_posix() for path in paths]


def study_hash(*studies: str) -> str:
    """Return a hash of the files of studies and of their published numbers."""
    published = [published_path(Path(), study) for study in studies]
    return content_hash(*study_inputs(*studies), *published)


def rule_code(root: Path, rooms: str, script: str) -> str:
    """Return the hash of a rule's code: the rooms that it uses (`Code`), and its script."""
    path = root / "workflow" / "scripts" / f"{script}.py"
    return value_hash([getattr(code(), rooms), sha256_of(path)])


def value_hash(value: Any) -> str:
    """Return the hash of plain data."""
    return digest_of(canonical_json(value).encode())[:16]


def input_hashes(root: Path, study: str, engine: Engine, **values: Any) -> dict[str, str]:
    """Return the current hashes of a study, its published numbers, an engine and other `values`."""
    path = published_path(root, study)
    numbers = read_published(path) if path.is_file() else []
    values |= {
        "study": load_study(root, study).decisive(include=_DECISIVE),
        "published": [[n.table, n.row, n.column, n.unit, n.value, n.printed] for n in numbers],
    }
    return {
        "engine": engine.name,
        "engine_fingerprint": engine.fingerprint(root),
        **{name: value_hash(value) for name, value in values.items()},
    }


def is_same(
    data: Path, then: Mapping[str, str], now: Callable[[Engine], Mapping[str, str]]
) -> bool:
    """Return whether a result's hashes `then` are those of its engine `now`."""
    if then.get("engine") not in ENGINES:
        return False
    provenance = data / "provenance.json"
    config = read_json(provenance)["config"] if provenance.is_file() else {}
    engine = chosen_engine(then["engine"], config.get("ns3_version", NS3_VERSION))
    return dict(then) == now(engine)
