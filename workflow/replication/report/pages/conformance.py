"""The section on conformance: each check on each engine, and recoveries side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from replication.compare.conformance_model import (
    Check,
    Conformance,
    Recovery,
    load_conformance,
    recovery_check,
)
from replication.compare.conformance_quantity import QUANTITIES, CheckQuantity
from replication.measure.thin import thin
from replication.report.drawing.figure import (
    Drawing,
    Figure,
    colours,
    dashes,
    legend_filter,
    make_figure,
    three_digits,
    zoom_of,
)
from replication.report.parts.number import display_unit
from replication.report.parts.source import Source
from replication.report.parts.verdict import Badge
from replication.study.storage.table import CONFORMANCE_COLUMNS, Row, read_frame, read_rows

HOLDS = Badge("holds", "reproduced", "inside the tolerance that was set before any run")
NAMED = Badge("known deviation", "direction", "outside it, and the cause is named")
DEVIATES = Badge("deviates", "failed", "outside it, for a cause that is not known yet")
REFUSED = Badge("refused", "untestable", "the engine lacks what the check needs, and says so")
OUTCOMES = (HOLDS, NAMED, DEVIATES, REFUSED)


@dataclass(frozen=True)
class CheckView:
    """A check as a row of the table; `outcomes` are in the order of the engines.

    An outcome is an engine's row, its verdict, and whether the expected value is the engine's own.
    """

    check: Check
    quantity: CheckQuantity
    outcomes: list[tuple[Row, Badge, bool]]


@dataclass(frozen=True)
class RecoveryView:
    """A variant through a list of losses; a pair is the row of both engines, and its verdict."""

    variant: str
    losses: str
    packets: str
    pairs: list[tuple[Row, Badge]]


@dataclass(frozen=True)
class DeviationView:
    """What deviates from what is expected, and why; one entry for checks of one cause."""

    engine: str
    checks: list[str]
    verdict: Badge
    note: str


@dataclass(frozen=True)
class ConformanceView:
    """Everything in the section.

    Attributes
    ----------
    engines
        Name, version and settings of each engine that was run.
    quantities
        Heads of the recovery table: words and unit.
    """

    engines: list[tuple[str, str, str]]
    outcomes: Sequence[Badge]
    counts: dict[str, int]
    checks: list[CheckView]
    recovery: Recovery
    quantities: list[tuple[str, str]]
    recoveries: list[RecoveryView]
    deviations: list[DeviationView]
    figures: list[Figure]


def conformance_view(source: Source) -> ConformanceView | None:
    """Return the section's view; None if no engine was held against the canonical scenarios."""
    path = source.data / "conformance.csv"
    # Where one of the two is left, the other was lost.
    if not path.is_file() and not (source.data / "conformance_cwnd.csv").is_file():
        return None
    rows = read_rows(path, CONFORMANCE_COLUMNS)
    document = load_conformance(source.root)
    by_check = {(row["check"], row["engine"]): row for row in rows}
    versions = {row["engine"]: row["engine_version"] for row in rows}
    reasons = {str(name): variant.reason for name, variant in document.engines.items()}
    recovery = document.recovery
    recoveries = _recoveries(document, by_check)
    return ConformanceView(
        engines=[(name, version, reasons.get(name, "")) for name, version in versions.items()],
        outcomes=OUTCOMES,
        counts={v.word: sum(_verdict(row) is v for row in rows) for v in OUTCOMES},
        checks=[_check(check, list(versions), by_check) for check in document.checks],
        recovery=recovery,
        quantities=[_head(name, recoveries) for name in recovery.quantities],
        recoveries=recoveries,
        deviations=_deviations(rows),
        figures=recovery_figures(recovery, read_frame(source.data / "conformance_cwnd.csv")),
    )


def _verdict(row: Row) -> Badge:
    if row["within"] == "refused":
        return REFUSED
    if row["within"] == "true":
        return HOLDS
    return NAMED if row["note"] else DEVIATES


def _check(check: Check, engines: list[str], rows: dict[tuple[str, str], Row]) -> CheckView:
    found = [rows[check.id, engine] for engine in engines if (check.id, engine) in rows]
    return CheckView(
        check,
        QUANTITIES[check.quantity],
        [(row, _verdict(row), check.expectation(row["engine"]) is not check) for row in found],
    )


def _recoveries(document: Conformance, rows: dict[tuple[str, str], Row]) -> list[RecoveryView]:
    recovery = document.recovery
    views = []
    for variant in recovery.variants:
        for losses, packets in recovery.losses.items():
            checks = [recovery_check(variant, losses, name) for name in recovery.quantities]
            found = [row for c in checks if (row := rows.get((c, recovery.subject)))]
            if found:
                pairs = [(row, _verdict(row)) for row in found]
                views.append(RecoveryView(variant, losses, ", ".join(map(str, packets)), pairs))
    return views


def _head(name: str, recoveries: list[RecoveryView]) -> tuple[str, str]:
    found = (row for view in recoveries for row, _ in view.pairs)
    units = {display_unit(row["unit"]) for row in found if row["check"].endswith(f".{name}")}
    words = name.removesuffix("_s").removesuffix("_bps").removesuffix("_segments")
    return words.replace("_", " "), next(iter(units), "")


def _deviations(rows: list[Row]) -> list[DeviationView]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if _verdict(row) in (NAMED, DEVIATES):
            grouped.setdefault((row["engine"], row["note"]), []).append(row["check"])
    return [
        DeviationView(engine, checks, NAMED if note else DEVIATES, note.removeprefix("known: "))
        for (engine, note), checks in grouped.items()
    ]


#: Samples that a panel may keep, both engines together.
SAMPLES = 600


def recovery_figures(recovery: Recovery, windows: pd.DataFrame) -> list[Figure]:
    """Return a figure a variant: cwnd against time of both engines, a panel a list of losses.

    Parameters
    ----------
    recovery
        Variants, losses and engines.
    windows
        variant, losses, engine, time_s, cwnd_segments; no figures unless both engines are in it.
    """
    engines = [str(recovery.subject), str(recovery.reference)]
    if not set(engines) <= set(windows["engine"]):
        return []
    shown = [name for name in recovery.variants if name in set(windows["variant"])]
    return [_figure(recovery, name, engines, windows[windows["variant"] == name]) for name in shown]


def _figure(recovery: Recovery, variant: str, engines: list[str], frame: pd.DataFrame) -> Figure:
    frame = frame[frame["engine"].isin(engines)]
    parts = [
        thin(part, "cwnd_segments", ["engine"], SAMPLES)
        for _, part in frame.groupby("losses", sort=False)
    ]
    frame = pd.concat(parts, ignore_index=True)
    panels = [
        _panel(part, engines, f"{variant} {losses}").properties(
            title=_words(recovery, str(losses)), width=250, height=170
        )
        for losses, part in frame.groupby("losses", sort=False)
    ]
    chart = alt.concat(*panels, columns=2).resolve_scale(color="shared", strokeDash="shared")
    title = f"{variant.title()} through listed losses: window against time"
    words = "Congestion window (segments) against time (s), a panel a list of lost packets."
    for (losses, engine), part in frame.groupby(["losses", "engine"], sort=False):
        low, high = part["cwnd_segments"].min(), part["cwnd_segments"].max()
        words += f" {losses}, {engine}: from {three_digits(low)} to {three_digits(high)} segments."
    return make_figure(["", "conformance", variant, "cwnd"], title, chart, words, frame)


def _words(recovery: Recovery, losses: str) -> str:
    packets = next(lost for name, lost in recovery.losses.items() if name == losses)
    return f"{losses}: lost {', '.join(map(str, packets))}"


def _panel(frame: pd.DataFrame, engines: list[str], name: str) -> Drawing:
    picked, opacity = legend_filter("engine", name)
    return (
        alt.Chart(frame[["engine", "time_s", "cwnd_segments"]])
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=alt.X("time_s:Q", title="Time (s)"),
            y=alt.Y("cwnd_segments:Q", title="cwnd (segments)"),
            color=colours("engine", engines, lines=True),
            strokeDash=dashes("engine", engines),
            opacity=opacity,
            tooltip=[
                alt.Tooltip("engine:N", title="Engine"),
                alt.Tooltip("time_s:Q", title="Time (s)", format=".4g"),
                alt.Tooltip("cwnd_segments:Q", title="cwnd (segments)", format=".4g"),
            ],
        )
        .add_params(picked, zoom_of(name))
    )
