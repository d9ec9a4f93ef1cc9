"""A study's best explanation in words: made from what `make explain` wrote, and nothing else.

`explanation_of` is what other pages take: sentences for a summary, texts for a second column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.sensitivity.explanation import (
    EXPLAINED_COLUMNS,
    NAME,
    NONE_FOUND,
    holding,
    is_current,
)
from replication.study.files import read_json
from replication.study.storage.table import Row, read_rows
from replication.study.study import Study

#: Tables, or near misses, that a sentence names.
_NAMED = 3


@dataclass(frozen=True)
class Explanation:
    """What is said of a study's best explanation.

    Attributes
    ----------
    word
        explanation, best guess or none found.
    sentences
        Two of them, for the study's summary.
    inside, median, claims, unseen
        Texts for a table: numbers inside, their median deviation and claims that hold, defaults to
        explanation, and what was not seen; empty where there are none.
    document
        All that was written of it.
    cells
        Each number under it, as explained_cells.csv has them.
    """

    word: str
    sentences: tuple[str, str]
    inside: str
    median: str
    claims: str
    unseen: str
    document: Mapping[str, Any]
    cells: list[Row]

    @property
    def is_found(self) -> bool:
        """Whether anything is called an explanation or a guess."""
        return self.word != NONE_FOUND


def explanation_of(root: Path, data: Path, study: Study) -> Explanation | None:
    """Return a study's explanation; None where none was searched on the files as they are now.

    Parameters
    ----------
    root, data
        The project's folder and that of the results.
    study
        The study.
    """
    folder = data / "sensitivity" / study.id
    if not (folder / NAME).is_file():
        return None
    document = read_json(folder / NAME)
    if not is_current(root, data, document):
        return None
    cells = read_rows(folder / "explained_cells.csv", EXPLAINED_COLUMNS)
    counts = (_sum(document, what) for what in ("before", "after", "cells"))
    inside = "{} to {} of {}".format(*counts)
    return Explanation(
        document["word"],
        (_first(document), _second(document, cells)),
        inside if document["score"] == "cells" else "",
        _median(document),
        f"{holding(document['claims_before'])} to {holding(document['claims_after'])}"
        f" of {len(document['claims_after'])}",
        f"{document['unseen']['before']} to {document['unseen']['after']}"
        f" of {document['unseen']['cells']}",
        document,
        cells,
    )


def title_of(atom: Mapping[str, Any]) -> str:
    """Return what a change says, with its value where its title has none, and its one table."""
    title, (_, _, table) = str(atom["title"]), atom["atom"].partition("@")
    if atom["kind"] == "set-up" and title == atom["atom_title"]:
        title = f"{title} ({atom['level']})"
    return f"{title} (table {table} alone)" if table else title


def _sum(document: Mapping[str, Any], what: str) -> int:
    """Return a count over what was seen and what was not."""
    return int(document["seen"][what] + document["unseen"][what])


def _median(document: Mapping[str, Any]) -> str:
    """Return the median deviation of the numbers seen, defaults to explanation."""
    before, after = (document["seen"][f"median_{when}"] for when in ("before", "after"))
    return "" if after is None else f"{100 * before:.2g} % to {100 * after:.2g} %"


def _first(document: Mapping[str, Any]) -> str:
    """Return what is met, and under which changes."""
    tried = (
        f"by a search over {document['set_ups_tried']} set-ups of "
        f"{len(document['atoms_tested'])} possible causes"
    )
    if document["word"] == NONE_FOUND:
        why = " ".join(document["reasons"])
        return f"No explanation is found {tried}. {why}".strip()
    what = "numbers are inside" if document["score"] == "cells" else "claims hold together"
    median = _median(document)
    off = f"; median deviation {median} of those seen" if median else ""
    inside, of = _sum(document, "after"), _sum(document, "cells")
    stated = f"(defaults {_sum(document, 'before')}{off})"
    titles = "; ".join(title_of(one) for one in document["atoms"])
    return (
        f"{document['word'].capitalize()}: {inside} of {of} {what} {stated} if: {titles}. "
        f"Found afterwards, {tried}."
    )


def _second(document: Mapping[str, Any], cells: list[Row]) -> str:
    """Return how it does on what was not seen, and what stays unexplained."""
    unseen = document["unseen"]
    what = "numbers" if document["score"] == "cells" else "claims"
    if document["word"] == NONE_FOUND:
        near = document["nearest"][0]["atoms"] if document["nearest"] else []
        named = ", ".join(f"{atom}={level}" for atom, level in near) or "the documented defaults"
        return f"The nearest miss: {named}."
    sentence = (
        f"Of {unseen['cells']} {what} that the search did not see {unseen['after']} "
        f"{'are inside' if what == 'numbers' else 'hold'} (defaults {unseen['before']})"
    )
    outside = Counter(row["table"] for row in cells if row["inside"] != "true")
    if outside:
        named = ", ".join(f"{count} of table {t}" for t, count in outside.most_common(_NAMED))
        sentence += f"; what stays unexplained: {named}"
    before, after = document["impossible"]["before"], document["impossible"]["after"]
    if before or after:
        sentence += (
            f"; printed numbers that break a bound of the set-up: {before} as stated, "
            f"{after} under it"
        )
    if not document["identified"]:
        sentence += "; not identified: other changes do as well"
    return sentence + "."
