"""Start a new study from an engine's example, or from the set-up of another study."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from replication.base.errors import InputError, check_known
from replication.base.files import read_text, read_yaml, write_text
from replication.base.position import located
from replication.base.table import PUBLISHED_COLUMNS
from replication.design.config import STUDIES, load_study, study_files, study_ids
from replication.design.study_check import check_study
from replication.engines.catalogue import ENGINES
from replication.study.published import published_path
from replication.study.study import Study

#: An example for each engine, as YAML and CSV; `head.txt` has the first lines of each study.
_TEMPLATES = Path("configs") / "templates"
#: Placeholder of the paper's words in a copied set-up; `replicate validate` counts it.
TO_FILL_IN = "to fill in"
_ID = re.compile(r"[a-z][a-z0-9_]*")


def new_study(
    root: Path, study: str, title: str = "", engine: str = "ns2", like: str = ""
) -> list[Path]:
    """Write a valid study by an engine's example or another's set-up (`like`); return its files."""
    title = title or f"Study {study}"
    if not _ID.fullmatch(study):
        raise InputError(f"id: {study!r} must be letters a-z, digits and _, first a letter")
    if study in study_ids(root):
        raise InputError(f"id: configs/studies/{study} exists; choose another id")
    if not title.strip() or not title.isprintable():
        raise InputError(f"title: {title!r} must be one line of text")
    if like:
        model = load_study(root, like)
        document = _set_up_of(root, model, study, title)
        numbers = ",".join(PUBLISHED_COLUMNS) + "\n"
        engine, what = model.original_system.engine, f"the set-up of {like} with its reasons"
    else:
        document, numbers = example(root, engine)
        lines = {"id": f"id: {study}", "title": f"title: {json.dumps(title, ensure_ascii=False)}"}
        document = re.sub(r"(?m)^(id|title): .*$", lambda line: lines[line[1]], document)
        what = f"an example for the engine {engine}, of an imagined paper"
    head = read_text(root / _TEMPLATES / "head.txt")
    head = head.format(title=title, what=what, id=study, engine=engine)
    made = {
        root / STUDIES / study / "study.yaml": head + document,
        published_path(root, study): numbers,
    }
    try:
        for path, text in made.items():
            write_text(path, text)
        with located(*study_files(root, study)):
            check_study(load_study(root, study), published_path(root, study))
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    return list(made)


def example(root: Path, engine: str = "ns2") -> tuple[str, str]:
    """Return an engine's example: a study as YAML, and its published numbers as CSV."""
    check_known("engine", [engine], ENGINES)
    study, numbers = (read_text(root / _TEMPLATES / f"{engine}.{end}") for end in ("yaml", "csv"))
    return study, numbers


def _set_up_of(root: Path, like: Study, study: str, title: str) -> str:
    document = read_yaml(root / STUDIES / like.id / "study.yaml")
    for key in ("tables", "claims", "unjudged", "changes"):
        document.pop(key, None)
    quantity = {"experiment": like.experiments[0].id, "metric": "throughput_bps"}
    words = dict.fromkeys(("quote", "place", "reading"), TO_FILL_IN)
    test = {"kind": "value", "of": quantity, "expect": {"at_least": 1.0}}
    document |= {
        "id": study,
        "title": title,
        "bibliography": {"title": TO_FILL_IN, "authors": [TO_FILL_IN]},
        "original_system": document["original_system"] | {"description": TO_FILL_IN},
        "notes": dict.fromkeys(("scope", "easy", "hard"), TO_FILL_IN),
        "claims": [{"id": "c01", **words, "test": test}],
    }
    document["original_system"].pop("repetitions", None)
    _forget_paper(document)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def _forget_paper(part: Any) -> None:
    """Replace each place and quote of the other paper by `to fill in`."""
    if isinstance(part, dict):
        if "published" in part:
            part["published"] = {"place": TO_FILL_IN}
        part = list(part.values())
    for inner in part if isinstance(part, list) else []:
        _forget_paper(inner)
