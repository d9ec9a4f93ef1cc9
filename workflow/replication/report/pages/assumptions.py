"""A study's parameters with their sources, and its changes after results were seen."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from replication.report.charts.data import levels_in_brief, unsaid_unit
from replication.study.parameter import Assumed, Factor, Parameter
from replication.study.study import Study
from replication.study.verdict import StudyChange, Subject, Verdict
from replication.verdicts.wording import table_names


def parameter_tables(study: Study) -> dict[str, Any]:
    """Return the assumed and published parameters of a study, and substitutions by engines."""
    entries = list(_entries(study))
    return {
        "assumed": [entry for entry in entries if entry[-1].assumed is not None],
        "published": [entry for entry in entries if entry[-1].published is not None],
        "substituted": [
            (one.engine, name, plain(study.parameters[name].value), plain(value), one.reason)
            for one in study.substitutions
            for name, value in one.set.items()
        ],
    }


def _entries(study: Study) -> Iterator[tuple[str, str, str, str, Parameter | Factor]]:
    """Yield experiment (empty for all), name, value, unit, and the parameter or factor itself."""
    for name, parameter in study.parameters.items():
        yield "", name, plain(parameter.value), parameter.unit, parameter
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            yield experiment.title, name, plain(parameter.value), parameter.unit, parameter
        for factor in experiment.factors:
            name = f"{factor.label} (varied)"
            yield experiment.title, name, levels_in_brief(factor), unsaid_unit(factor), factor


def plausible(tag: Assumed) -> str:
    """Return the plausible range or the choices of an assumption."""
    if tag.range is not None:
        return f"{plain(tag.range[0])} to {plain(tag.range[1])}"
    return ", ".join(plain(choice) for choice in tag.choices or [])


def plain(value: JsonValue) -> str:
    """Return a parameter's value in words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{round(value):,}" if value == round(value) else f"{value:.12g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


#: Verdicts that have an order, and their ranks.
_RANK = {Verdict.NOT_REPRODUCED: 0, Verdict.DIRECTION_ONLY: 1, Verdict.REPRODUCED: 2}
MOVES = ("up", "down", "stayed", "became testable", "no longer testable")


def changes_view(study: Study) -> dict[str, Any]:
    """Return a study's changes, latest last, and the number of verdicts that moved each way."""
    changes = [_change(study, change) for change in study.changes]
    verdicts = [pair for one in changes for effect in one["effects"] for pair in effect["verdicts"]]
    moves = Counter(_moved(before, after) for _, before, after in verdicts if before and after)
    return {"study": study, "changes": changes, "moves": moves}


def _moved(before: str, after: str) -> str:
    """Return the way a verdict moved; `impossible` counts as not testable."""
    old, new = (_RANK.get(Verdict(verdict)) for verdict in (before, after))
    if old == new:
        return "stayed"
    if old is None:
        return "became testable"
    if new is None:
        return "no longer testable"
    return "up" if new > old else "down"


def _change(study: Study, change: StudyChange) -> dict[str, Any]:
    effects = list(_effects(study, change))
    said = {key: getattr(change, key) for key in ("was", "now", "why")}
    if len(effects) == 1:
        # The texts of a single subject are those of the change.
        said = {key: said[key] or effects[0].pop(key) for key in said}
        effects[0] |= dict.fromkeys(said)
    return {"date": change.date, **said, "effects": effects}


def _effects(study: Study, change: StudyChange) -> Iterator[dict[str, Any]]:
    """Yield each subject of a change, its texts if they differ, and its verdicts by engine."""
    quotes = {sentence.id: sentence.quote for sentence in study.sentences}
    names = table_names(study)
    kinds: tuple[Subject, ...] = ("claims", "tables", "parameters")
    for kind in kinds:
        for key, effect in getattr(change, kind).items():
            # A claim's new reading describes the change where the change has no text.
            full = study.changes_to(kind, key)
            own = next(one for one in full if one.date == change.date)
            name = f"claim {key}" if kind == "claims" else key.rpartition("/")[2].replace("_", " ")
            yield {
                "what": names[key] if kind == "tables" else name,
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
