"""Registration: what was set before a study was judged, and what was changed afterwards.

The first evaluation of a study leaves the hashes of its published numbers, tolerances, margins,
ranges and possible causes beside the results, and so does its first sensitivity analysis. Whatever
differs when it is judged again was changed after results existed, and so was a registration that is
not what was written: the report says so until the results are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from replication.judge.causes.atom import load_atoms
from replication.plan.stamp import changed, listed, value_hash
from replication.study.assumption import assumptions
from replication.study.errors import InputError
from replication.study.published import published_path, read_published
from replication.study.sensitivity_settings import load_sensitivity
from replication.study.storage.seal import read_sealed, write_sealed
from replication.study.study import Study

#: What a part is registered as: one hash, or one for each published number.
Part = str | Mapping[str, str]
Registered = Mapping[str, Part]
#: Stands in a history where it was found to be another than was written.
ALTERED = "altered"
#: What is registered, in words.
PARTS = {
    ALTERED: "what was registered before the results (its file was edited or damaged)",
    "published": "published numbers",
    "tolerances": "tolerances of published numbers",
    "margins": "tests and margins of claims",
    "ranges": "defaults and plausible ranges of assumptions",
    "causes": "possible causes of gaps",
    "settings": "settings of the sensitivity analysis",
}
#: What of a table decides no verdict.
_TOLD = {"tolerance": {"changed"}, "label": True}
_UNREGISTERED: Any = {
    "title": True,
    "changed": True,
    "cell": _TOLD,
    "columns": {"__all__": _TOLD},
    "rows": {"__all__": {"label"}},
}
#: Keys that are younger than registrations which must still hold, and what each is if not given.
_YOUNGER: dict[str, Any] = {
    "tie": 0.0,
    "rank": None,
    "run_of": None,
    "not_comparable": {},
    "varies": None,
    "for_each": None,
}
#: Who registers a study: its evaluation, and its sensitivity analysis. Each keeps its own file.
REGISTRARS = ("", ".sensitivity")


def registered(root: Path, study: Study) -> Registered:
    """Return the hash of each part of `PARTS` as the files have it now."""
    settings = load_sensitivity(root)
    parts: dict[str, Any] = {
        "tolerances": [
            table.model_dump(mode="json", exclude=_UNREGISTERED) for table in study.tables
        ],
        "margins": {claim.id: claim.test.model_dump(mode="json") for claim in study.claims},
        "ranges": {
            a.key: [
                a.default,
                a.tag.model_dump(mode="json", include={"range", "choices", "varies"}),
            ]
            for a in assumptions(study)
        },
        "causes": [atom.model_dump(mode="json") for atom in load_atoms(root, study.id)],
        "settings": {
            **settings.model_dump(mode="json", exclude={"studies", "other_studies", "jobs"}),
            "scale": settings.of(study.id).model_dump(mode="json"),
        },
    }
    numbers = read_published(published_path(root, study.id))
    published = {
        f"{number.table}, {number.row}, {number.column}": value_hash(
            [number.unit, number.value, number.printed]
        )
        for number in numbers
    }
    hashes = {name: value_hash(_without_younger(part)) for name, part in parts.items()}
    return {"published": published} | hashes


def _without_younger(part: Any) -> Any:
    """Return a part without the keys of `_YOUNGER` that say nothing."""
    if isinstance(part, list):
        return [_without_younger(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _without_younger(item)
        for key, item in part.items()
        if key not in _YOUNGER or item != _YOUNGER[key]
    }


def record_path(data: Path, study: str, registrar: str = "") -> Path:
    """Return the file that keeps a study's registrations by one of `REGISTRARS`."""
    return data / "registered" / f"{study}{registrar}.json"


def register(root: Path, data: Path, study: Study, registrar: str = "") -> None:
    """Keep the hashes with which the study is judged, if they differ from the last ones."""
    path = record_path(data, study.id, registrar)
    history = _read(path)
    now = registered(root, study)
    if not history or history[-1] != now:
        write_sealed(path, json.dumps([*history, now], indent=2, sort_keys=True) + "\n")


def read_history(data: Path, study: str) -> list[Registered]:
    """Return a study's registrations, each registrar's first one first; none if never judged.

    A file that was edited or damaged cannot be made anew: what of it can be read is followed by an
    entry that says so, and stays when the study is judged again.
    """
    return [entry for name in REGISTRARS for entry in _read(record_path(data, study, name))]


def _read(path: Path) -> list[Registered]:
    if not path.is_file():
        return []
    try:
        return _entries(read_sealed(path))
    except InputError:
        pass
    try:
        known = _entries(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError, AttributeError):
        known = []
    return [*known, {ALTERED: "true"}]


def _entries(text: str) -> list[Registered]:
    return [
        {str(k): part if isinstance(part, dict) else str(part) for k, part in entry.items()}
        for entry in json.loads(text)
    ]


def changed_after_the_fact(root: Path, data: Path, study: Study) -> list[str]:
    """Return the parts, by their words, that differ from what was set before the first result."""
    history = read_history(data, study.id)
    if not history:
        return []
    states = [*history, registered(root, study)]
    found = []
    for name, words in PARTS.items():
        parts = [state[name] for state in states if name in state]
        numbers = _changed_numbers(parts) if name == "published" else []
        if numbers:
            found.append(f"{words} ({listed(numbers, '; ')})")
        elif parts and (name == ALTERED or any(part != parts[0] for part in parts)):
            found.append(words)
    return found


def _changed_numbers(parts: Sequence[Part]) -> list[str]:
    """Return the published numbers that are not in every registration what they are in the first.

    A registration of before there were any of numbers says nothing of them.
    """
    tables = [part for part in parts if isinstance(part, Mapping)]
    return list(dict.fromkeys(name for table in tables for name in changed(tables[0], table)))
