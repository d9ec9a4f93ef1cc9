"""Changes after results were seen: those of studies, settings and regions, and causes added."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from replication.base.table import flat
from replication.design.config import load_settings_changes
from replication.explore.cause import load_explanations
from replication.explore.regions.region_model import SETTINGS as REGION_SETTINGS
from replication.explore.regions.region_model import load_region, load_settings, region_names
from replication.study.study import Study
from replication.study.verdict import Change, Effect, SettingsChange, StudyChange, Subject
from replication.verdicts.summary import MOVES, moves
from replication.verdicts.wording import table_names


@dataclass(frozen=True)
class Move:
    """The verdicts on one engine before and after a change; empty where they are not known."""

    engine: str
    before: str
    after: str


@dataclass(frozen=True)
class Words:
    """What was changed and why; empty where a text is said elsewhere."""

    was: str | None = None
    now: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class EffectView:
    """A subject of a change, with its texts and its verdicts by engine."""

    what: str
    quote: str
    key: str
    words: Words
    verdicts: list[Move]


@dataclass(frozen=True)
class ChangeView:
    """A change of a study."""

    date: str
    words: Words
    effects: list[EffectView]


@dataclass(frozen=True)
class StudyChanges:
    """The changes of a study, latest last, and how many verdicts moved each way."""

    study: Study
    changes: list[ChangeView]
    moves: Counter[str]


@dataclass(frozen=True)
class RegionChanges:
    """The changes of a region, or of all, by its title."""

    title: str
    changes: list[Change]


@dataclass(frozen=True)
class AddedCauses:
    """The causes, values and starts that were added to a study's search, by date."""

    study: Study
    by_date: dict[str, list[str]]

    @property
    def count(self) -> int:
        """How many were added."""
        return sum(len(titles) for titles in self.by_date.values())


@dataclass(frozen=True)
class Changes:
    """All that was changed after results were seen; `total` is 0 if no study was changed."""

    studies: list[StudyChanges]
    settings: list[SettingsChange]
    regions: list[RegionChanges]
    causes: list[AddedCauses]
    moves: dict[str, int]
    total: int

    @property
    def of_regions(self) -> int:
        """How many are changes of regions."""
        return sum(len(region.changes) for region in self.regions)


def changes_page(root: Path, studies: Iterable[Study]) -> Changes:
    """Return all that was changed after results were seen, as the pages show it.

    `studies` are those of the report; regions and causes of other studies are left out. Settings
    were changed after results of these studies only if one of them was changed as well.
    """
    every = list(studies)
    views = [changes_view(study) for study in every if study.changes]
    causes = [AddedCauses(study, _added_causes(root, study.id)) for study in every]
    counted = sum((view.moves for view in views), Counter[str]())
    page = Changes(
        studies=views,
        settings=load_settings_changes(root),
        regions=list(_changed_regions(root, [study.id for study in every])),
        causes=[added for added in causes if added.by_date],
        moves={way: counted[way] for way in MOVES},
        total=0,
    )
    of_studies = sum(len(view.changes) for view in views)
    total = of_studies + len(page.settings) + page.of_regions
    return replace(page, total=total if of_studies else 0)


def _changed_regions(root: Path, studies: Sequence[str]) -> Iterator[RegionChanges]:
    """Yield each region that was changed, with its changes."""
    if (root / REGION_SETTINGS).is_file() and (changed := load_settings(root).changed):
        yield RegionChanges("All regions", changed)
    for name in region_names(root):
        region = load_region(root, name)
        if region.changed and region.study in studies:
            yield RegionChanges(region.title, region.changed)


def _added_causes(root: Path, study: str) -> dict[str, list[str]]:
    """Return the causes, values and starts that were added after results were seen, by date."""
    known = load_explanations(root, study)
    if known is None:
        return {}
    added: dict[str, list[str]] = {}
    for cause in known.causes:
        later = {level.added.date for level in cause.levels or [] if level.added}
        if cause.added.results == "after":
            added.setdefault(cause.added.date, []).append(cause.title)
        for date in sorted(later - {cause.added.date}):
            added.setdefault(date, []).append(f"{cause.title}: further values")
    if known.coupled and known.coupled.added.results == "after":
        added.setdefault(known.coupled.added.date, []).append(f"start: {known.coupled.title}")
    return dict(sorted(added.items()))


def changes_view(study: Study) -> StudyChanges:
    """Return a study's changes, latest last, and the number of verdicts that moved each way."""
    changes = [_change(study, change) for change in study.changes]
    effects = flat(change.effects for change in changes)
    moved = flat(effect.verdicts for effect in effects)
    return StudyChanges(study, changes, moves((move.before, move.after) for move in moved))


def _change(study: Study, change: StudyChange) -> ChangeView:
    effects = list(_effects(study, change))
    words = Words(change.was, change.now, change.why)
    if len(effects) == 1:
        # The texts of a single subject are those of the change.
        (effect,) = effects
        of_effect = effect.words
        words = Words(
            was=words.was or of_effect.was,
            now=words.now or of_effect.now,
            why=words.why or of_effect.why,
        )
        effects = [replace(effect, words=Words())]
    return ChangeView(change.date, words, effects)


def _subject(study: Study, kind: Subject, key: str, names: Mapping[str, str]) -> str:
    """Return what a change is about, in words; `names` are those of tables."""
    if kind == "claims":
        return f"claim {key}"
    if kind == "tables":
        return names[key]
    if kind == "experiments":
        return f"experiment “{study.experiment(key).title}”"
    return key.rpartition("/")[2].replace("_", " ")


def _effects(study: Study, change: StudyChange) -> Iterator[EffectView]:
    """Yield each subject of a change, its texts if they differ, and its verdicts by engine."""
    quotes = {sentence.id: sentence.quote for sentence in study.sentences}
    names = table_names(study)
    kinds: tuple[Subject, ...] = ("claims", "tables", "parameters", "experiments")
    for kind in kinds:
        for key, effect in getattr(change, kind).items():
            yield EffectView(
                what=_subject(study, kind, key, names),
                quote=quotes[key] if kind == "claims" else "",
                key=key,
                words=_words(study, change, kind, key, effect),
                verdicts=_moves(effect),
            )


def _words(study: Study, change: StudyChange, kind: Subject, key: str, effect: Effect) -> Words:
    # A claim's new reading describes the change where the change has no text.
    changes = study.changes_to(kind, key)
    same_day = next(other for other in changes if other.date == change.date)
    now = effect.now or ("" if change.now else same_day.now)
    return Words(effect.was, now, effect.why)


def _moves(effect: Effect) -> list[Move]:
    before, after = effect.before, effect.after
    engines = dict.fromkeys([*before, *after])
    return [Move(engine, before.get(engine, ""), after.get(engine, "")) for engine in engines]
