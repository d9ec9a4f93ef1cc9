"""A new study: the guide's worked example, under a name and title of one's own, to be filled in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from replication.design.config import load_study, study_ids
from replication.design.study_check import check_study
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.published import published_path
from replication.study.study import ExperimentType

#: The guide that holds the example, and the example's id and type there.
GUIDE = Path("configs") / "README.md"
EXAMPLE = "example"
_EXAMPLE_TITLE = "Reno over a longer and longer link"
_ID = re.compile(r"[a-z][a-z0-9_]*")
#: The types that an experiment can have.
TYPES: tuple[str, ...] = get_args(ExperimentType)
_HEAD = """\
# {title}
# To fill in: everything below is the guide's example (configs/README.md), valid as it stands.
#   1. bibliography, original_system, notes: the paper.
#   2. parameters: `published` with its place and quote, or `assumed` with reason, source and range.
#   3. experiments: factors and their levels, topology, flows.
#   4. tables, with the numbers in data/published/{id}.csv; claims, with quote, place and test.
# Then: replicate validate; make plan STUDIES={id}; make report TIER=quick STUDIES={id}
"""


def new_study(root: Path, study: str, title: str, kind: str) -> list[Path]:
    """Write a valid study of one experiment of type `kind`; return its paths.

    InputError where the id, title or type will not do; nothing is written.
    """
    if not _ID.fullmatch(study):
        raise InputError(
            f"id: {study!r} must be small letters, digits and _, starting with a letter"
        )
    if study in study_ids(root):
        raise InputError(f"id: configs/studies/{study} exists; choose another id")
    if not title.strip() or not title.isprintable():
        raise InputError(f"title: {title!r} must be one line of text")
    if kind not in TYPES:
        raise InputError(f"type: {kind!r} is unknown; there are {', '.join(TYPES)}")
    document, numbers = example(root)
    quoted = '"' + title.replace("\\", "\\\\").replace('"', '\\"') + '"'
    document = document.replace(f"id: {EXAMPLE} # the folder's name", f"id: {study}", 1)
    document = document.replace(f"title: {_EXAMPLE_TITLE}", f"title: {quoted}", 1)
    document = re.sub(r"(?m)^    type: \w+$", f"    type: {kind}", document, count=1)
    made = {
        root / "configs" / "studies" / study / "study.yaml": _HEAD.format(title=title, id=study)
        + document,
        published_path(root, study): numbers,
    }
    try:
        for path, text in made.items():
            write_text(path, text)
        check_study(load_study(root, study), list(made)[1])
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    return list(made)


def example(root: Path) -> tuple[str, str]:
    """Return the guide's example: a study as YAML, and its published numbers as CSV."""
    guide = (root / GUIDE).read_text(encoding="utf-8")
    found = []
    for kind, start in (("yaml", "schema_version: 1\n"), ("csv", "table,row,column")):
        block = re.search(rf"```{kind}\n({re.escape(start)}.*?)```", guide, re.DOTALL)
        if block is None:
            raise InputError(f"{root / GUIDE}: has no example of a study; restore it from git")
        found.append(block[1])
    return found[0], found[1]
