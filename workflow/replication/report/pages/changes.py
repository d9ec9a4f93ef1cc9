"""Changes after results were seen: those of studies, settings and regions, and causes added."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from replication.design.config import load_settings_changes
from replication.explore.regions.region_model import SETTINGS as REGION_SETTINGS
from replication.explore.regions.region_model import load_region, load_settings, region_names
from replication.study.study import Study
from replication.study.verdict import Change, StudyChange, Subject, Verdict
from replication.verdicts.cause import load_explanations
from replication.verdicts.wording import table_names

#: Verdicts that have an order, and their ranks.
_RANK = {Verdict.NOT_REPRODUCED: 0, Verdict.DIRECTION_ONLY: 1, Verdict.REPRODUCED: 2}
MOVES = ("up", "down", "stayed", "became testable", "no longer testable")


def changes_page(root: Path, studies: Iterable[Study]) -> dict[str, Any]:
    """Return all that was changed after results were seen, as the pages show it.

    `studies` are those of the report; regions and causes of other studies are left out. Settings
    were changed after results of these studies only if one of them was changed as well.
    """
    every = list(studies)
    views = [changes_view(study) for study in every if study.changes]
    settings = load_settings_changes(root)
    regions = list(_changed_regions(root, [study.id for study in every]))
    causes = [(study, _added_causes(root, study.id)) for study in every]
    own = sum(len(view["changes"]) for view in views)
    shared = len(settings) + sum(len(changed) for _, changed in regions)
    moves: Counter[str] = Counter()
    for view in views:
        moves.update(view["moves"])
    return {
        "studies": views,
        "settings": settings,
        "regions": regions,
        "causes": [one for one in causes if one[1]],
        "moves": {way: moves[way] for way in MOVES},
        "total": own + shared if own else 0,
    }


def _changed_regions(root: Path, studies: Sequence[str]) -> Iterator[tuple[str, list[Change]]]:
    """Yield the title of each region that was changed, and its changes."""
    if (root / REGION_SETTINGS).is_file() and (changed := load_settings(root).changed):
        yield "All regions", changed
    for name in region_names(root):
        region = load_region(root, name)
        if region.changed and region.study in studies:
            yield region.title, region.changed


def _added_causes(root: Path, study: str) -> dict[str, list[str]]:
    """Return the causes, values and starts that were added after results were seen, by date."""
    known = load_explanations(root, study)
    if known is None:
        return {}
    added: dict[str, list[str]] = {}
    for cause in known.causes:
        later = {one.added.date for one in cause.levels or [] if one.added}
        if cause.added.results == "after":
            added.setdefault(cause.added.date, []).append(cause.title)
        for date in sorted(later - {cause.added.date}):
            added.setdefault(date, []).append(f"{cause.title}: further values")
    if known.coupled and known.coupled.added.results == "after":
        added.setdefault(known.coupled.added.date, []).append(f"start: {known.coupled.title}")
    return dict(sorted(added.items()))


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


def _subject(study: Study, kind: Subject, key: str, names: Mapping[str, str]) -> str:
    """Return what a change is about, in words; `names` are those of tables."""
    if kind == "claims":
        return f"claim {key}"
    if kind == "tables":
        return names[key]
    if kind == "experiments":
        return f"experiment “{study.experiment(key).title}”"
    return key.rpartition("/")[2].replace("_", " ")


def _effects(study: Study, change: StudyChange) -> Iterator[dict[str, Any]]:
    """Yield each subject of a change, its texts if they differ, and its verdicts by engine."""
    quotes = {sentence.id: sentence.quote for sentence in study.sentences}
    names = table_names(study)
    kinds: tuple[Subject, ...] = ("claims", "tables", "parameters", "experiments")
    for kind in kinds:
        for key, effect in getattr(change, kind).items():
            # A claim's new reading describes the change where the change has no text.
            full = study.changes_to(kind, key)
            own = next(one for one in full if one.date == change.date)
            yield {
                "what": _subject(study, kind, key, names),
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
