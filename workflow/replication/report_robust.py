"""How robust a study's verdicts are, for its page: shown only if current results exist."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from replication.assumption import Assumption, assumptions
from replication.chart_spread import spread_figures
from replication.design_point import ONE_AT_A_TIME
from replication.registration import changed_after_the_fact
from replication.report_figure import FigureView, write_figures
from replication.report_ledger import plain
from replication.robustness_rows import RobustnessRows
from replication.sensitivity import is_current
from replication.sensitivity_settings import Scale, load_sensitivity
from replication.story import Story, claim_sentence, table_stories
from replication.study import Study


@dataclass(frozen=True)
class RobustClaim:
    """A claim: its word and the sentence behind it."""

    id: str
    quote: str
    word: str
    sentence: str


@dataclass(frozen=True)
class EffectView:
    """An assumption and what it does: claims that it flips alone, claims that it decides."""

    key: str
    default: str
    plausible: str
    varied: bool
    flips: list[str]
    decides: list[str]


@dataclass(frozen=True)
class RobustView:
    """The section.

    Attributes
    ----------
    changed
        What was changed after results existed.
    stale
        Whether results exist that were made from other files; then nothing else is shown.
    """

    changed: list[str]
    stale: bool = False
    engine: str = ""
    points: int = 0
    scale: Scale | None = None
    words: tuple[tuple[str, int], ...] = ()
    claims: tuple[RobustClaim, ...] = ()
    effects: tuple[EffectView, ...] = ()
    stories: tuple[Story, ...] = ()
    figures: tuple[FigureView, ...] = ()


def robust_view(root: Path, data: Path, study: Study, out: Path) -> RobustView | None:
    """Return the section, its figures written below `out`; None where there is nothing to say.

    Parameters
    ----------
    root, data
        The project's folder and that of the results.
    study
        Whose page it is.
    out
        The report's folder.
    """
    changed = changed_after_the_fact(root, data, study)
    folder = data / "sensitivity" / study.id
    if not (folder / "claims.csv").is_file():
        return RobustView(changed) if changed else None
    if not is_current(root, folder, study.id):
        return RobustView(changed, stale=True)
    rows = RobustnessRows.load(folder, study.id)
    settings = load_sensitivity(root)
    counted = Counter(row["word"] for row in rows.claims)
    quotes = {claim.id: claim.quote for claim in study.claims}
    return RobustView(
        changed,
        engine=settings.engine,
        points=len(rows.points),
        scale=settings.of(study.id).exploration,
        words=tuple(counted.most_common()),
        claims=tuple(
            RobustClaim(r["claim"], quotes.get(r["claim"], ""), r["word"], claim_sentence(r))
            for r in rows.claims
        ),
        effects=tuple(_effect(assumption, rows) for assumption in assumptions(study)),
        stories=tuple(table_stories(study, rows)),
        figures=tuple(write_figures(spread_figures(rows.spread, study.id), out)),
    )


def _effect(assumption: Assumption, rows: RobustnessRows) -> EffectView:
    key = assumption.key
    own = [r for r in rows.effects if r["parameter"] == key and r["method"] == ONE_AT_A_TIME]
    flips = dict.fromkeys(
        row["claim"]
        for row in own
        if _holds(row["before"]) != _holds(row["after"])
        and "not testable" not in (row["before"], row["after"])
    )
    decides = [row["claim"] for row in rows.claims if key in row["important"].split("; ")]
    tag = assumption.tag
    if tag.range is not None:
        plausible = f"{plain(tag.range[0])} to {plain(tag.range[1])} {assumption.unit}".strip()
    else:
        plausible = ", ".join(plain(choice) for choice in tag.choices or [])
    return EffectView(key, plain(assumption.default), plausible, bool(own), [*flips], decides)


def _holds(verdict: str) -> bool:
    return verdict == "reproduced"
