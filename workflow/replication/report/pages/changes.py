"""What was changed after results were seen: each change once, and which way verdicts moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from replication.report.pages.ledger import parameter_name
from replication.study.study import Study
from replication.study.verdict import StudyChange, Subject, Verdict
from replication.verdicts.wording import table_names

#: Verdicts that can be put in an order, worst first.
_ORDER = (Verdict.NOT_REPRODUCED, Verdict.DIRECTION_ONLY, Verdict.REPRODUCED)
UP, DOWN, STAYED, TESTABLE, UNTESTABLE = (
    "up",
    "down",
    "stayed",
    "became testable",
    "no longer testable",
)
MOVES = (UP, DOWN, STAYED, TESTABLE, UNTESTABLE)


def changes_view(study: Study) -> dict[str, Any]:
    """Return a study's changes, latest last, and how many verdicts moved which way."""
    changes = [_change(study, change) for change in study.changes]
    verdicts = [pair for one in changes for effect in one["effects"] for pair in effect["verdicts"]]
    moves = Counter(moved(before, after) for _, before, after in verdicts if before and after)
    return {"study": study, "changes": changes, "moves": moves}


def moved(before: str, after: str) -> str:
    """Return which way a verdict moved; `impossible` counts as not testable."""
    ranks = [_ORDER.index(Verdict(v)) if v in _ORDER else None for v in (before, after)]
    old, new = ranks
    if old is None or new is None:
        return STAYED if old == new else TESTABLE if old is None else UNTESTABLE
    return STAYED if old == new else UP if new > old else DOWN


def _change(study: Study, change: StudyChange) -> dict[str, Any]:
    effects = list(_effects(study, change))
    said = {key: getattr(change, key) for key in ("was", "now", "why")}
    if len(effects) == 1:
        # Words of the one subject are those of the change.
        said = {key: said[key] or effects[0].pop(key) for key in said}
        effects[0] |= dict.fromkeys(said)
    return {"date": change.date, **said, "effects": effects}


def _effects(study: Study, change: StudyChange) -> Iterator[dict[str, Any]]:
    """Yield each subject of a change, its words where they differ, and its verdicts by engine."""
    quotes = {sentence.id: sentence.quote for sentence in study.sentences}
    names = table_names(study)
    kinds: tuple[Subject, ...] = ("claims", "tables", "parameters")
    for kind in kinds:
        for key, effect in getattr(change, kind).items():
            # As the subject has it: a claim's new reading where the change says none.
            full = study.changes_to(kind, key)
            own = next(one for one in full if one.date == change.date)
            yield {
                "what": names[key] if kind == "tables" else parameter_name(study, key),
                "quote": quotes[key] if kind == "claims" else "",
                "key": key,
                "was": effect.was,
                "now": effect.now or ("" if change.now else own.now),
                "why": effect.why,
                "verdicts": [
                    (engine, effect.before.get(engine, ""), effect.after.get(engine, ""))
                    for engine in dict.fromkeys([*effect.before, *effect.after])
                ],
            }
