"""Registration: what was set before a study was judged, and what was changed afterwards.

The first evaluation of a study leaves the hashes of its tolerances, margins, ranges and hypotheses
beside the results. Whatever differs when it is judged again was changed after results existed; the
report says so until the results are deleted.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from replication.assumption import assumptions
from replication.errors import InputError
from replication.files import write_text
from replication.hypothesis import load_hypotheses
from replication.scenario import canonical_json
from replication.sensitivity_settings import load_sensitivity
from replication.study import Study

#: What is registered, in words.
PARTS = {
    "tolerances": "tolerances of published numbers",
    "margins": "tests and margins of claims",
    "ranges": "defaults and plausible ranges of assumptions",
    "hypotheses": "hypotheses",
    "settings": "settings of the sensitivity analysis",
}


def registered(root: Path, study: Study) -> dict[str, str]:
    """Return the hash of each part of `PARTS` as the files have it now."""
    settings = load_sensitivity(root)
    parts: dict[str, Any] = {
        "tolerances": [table.model_dump(mode="json", exclude={"title"}) for table in study.tables],
        "margins": {claim.id: claim.test.model_dump(mode="json") for claim in study.claims},
        "ranges": {
            a.key: [a.default, a.tag.model_dump(mode="json", include={"range", "choices"})]
            for a in assumptions(study)
        },
        "hypotheses": [h.model_dump(mode="json") for h in load_hypotheses(root).of(study.id)],
        "settings": {
            **settings.model_dump(mode="json", exclude={"studies", "other_studies", "jobs"}),
            "scale": settings.of(study.id).model_dump(mode="json"),
        },
    }
    return {
        name: hashlib.sha256(canonical_json(part).encode()).hexdigest()[:16]
        for name, part in parts.items()
    }


def record_path(data: Path, study: str) -> Path:
    """Return the file that keeps a study's registrations."""
    return data / "registered" / f"{study}.json"


def register(root: Path, data: Path, study: Study) -> None:
    """Keep the hashes with which the study is judged, if they differ from the last ones."""
    history = read_history(data, study.id)
    now = registered(root, study)
    if not history or history[-1] != now:
        text = json.dumps([*history, now], indent=2, sort_keys=True)
        write_text(record_path(data, study.id), text + "\n")


def read_history(data: Path, study: str) -> list[dict[str, str]]:
    """Return the study's registrations, the first one first; empty where it was never judged.

    Raises
    ------
    InputError
        The file is damaged.
    """
    path = record_path(data, study)
    if not path.is_file():
        return []
    try:
        history = json.loads(path.read_text(encoding="utf-8"))
        return [{str(k): str(v) for k, v in entry.items()} for entry in history]
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: is damaged ({error}); `make clean` and run again") from None


def changed_after_the_fact(root: Path, data: Path, study: Study) -> list[str]:
    """Return the parts, by their words, that differ from what was set before the first result."""
    history = read_history(data, study.id)
    if not history:
        return []
    states = [*history[1:], registered(root, study)]
    first = history[0]
    return [
        words
        for name, words in PARTS.items()
        if any(state.get(name) != first.get(name) for state in states)
    ]
