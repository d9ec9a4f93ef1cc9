"""What the notebook on engines shows of one study on several engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replication.compare.agreement import CELL, CLAIM, Pair, Rate, StudyVerdicts, rates
from replication.compare.agreement_table import read_judged
from replication.judge.headline import headline
from replication.judge.verdict_table import read_table
from replication.report.charts.engine import engine_figures
from replication.report.charts.verdict import verdicts_figure
from replication.report.drawing.data import read_cells
from replication.report.drawing.figure import Figure
from replication.report.notebooks.experiment import find_project
from replication.report.notebooks.markup import Html, interval, percent, rounded, show, table, text


@dataclass(frozen=True)
class EngineNotebook:
    """One study's verdicts on every engine.

    Attributes
    ----------
    judged, pairs
        The verdicts, and each claim and cell on each pair of engines.
    folder
        Folder of reproduced results.
    """

    judged: StudyVerdicts
    pairs: list[Pair]
    folder: Path

    @classmethod
    def open(cls, study: str, data: str, root: str = "") -> EngineNotebook:
        """Open the notebook; parameters and errors are those of `ExperimentNotebook.open`."""
        project = Path(root) if root else find_project(Path.cwd())
        folder = Path(data) if Path(data).is_absolute() else project / data
        judged = read_judged(project, folder, study)
        return cls(judged, list(judged.pairs()), folder)

    def ran(self) -> Html:
        """Return what each engine ran, and whose verdicts stand."""
        study = self.judged.study
        own = study.original_system.engine
        rows = [
            (
                f"{part.engine} (the paper's own)" if part.engine == own else part.engine,
                part.ran,
                part.refused,
                "; ".join(part.reasons) or "–",
            )
            for part in self.judged.parts.values()
        ]
        chosen = headline(own, self.judged.parts)
        stands = chosen.mark or f"The verdicts of {chosen.engine} stand: the paper ran it."
        head = ["Engine", "Points run", "Points refused", "Why"]
        return Html(f"{table(head, rows, study.title)}<p>{text(stands)}</p>")

    def agreement(self) -> Html:
        """Return how often each pair of engines agrees, with Wilson's interval."""
        found = [rate for rate in rates([self.judged], self.pairs) if rate.study]
        if not found:
            return Html("<p>One engine ran: there is nothing to compare.</p>")
        head = ["Engines", "Kind", "Agree", "Compared", "Share", "95 % interval"]
        return Html(table([*head, "Note"], [_rate_row(rate) for rate in found], "Agreement"))

    def claims(self) -> Html:
        """Return each claim's verdict on each pair of engines."""
        rows = [
            (pair.key[0], pair.left, pair.left_verdict, pair.right, pair.right_verdict, _word(pair))
            for pair in self._kind(CLAIM)
        ]
        head = ["Claim", "Engine", "Verdict", "Engine", "Verdict", "Same"]
        return Html(table(head, rows, "Claims") if rows else "<p>No claims to compare.</p>")

    def cells(self) -> Html:
        """Return each published number's verdict and relative difference on each pair."""
        rows = [
            (
                ", ".join(pair.key),
                f"{pair.left}: {pair.left_verdict}",
                f"{pair.right}: {pair.right_verdict}",
                percent(pair.difference.mean),
                interval(100 * pair.difference.low, 100 * pair.difference.high),
                _word(pair),
            )
            for pair in self._kind(CELL)
        ]
        head = ["Number", "Verdict", "Verdict", "Difference", "95 % interval (%)", "Same"]
        return Html(
            table(head, rows, "Published numbers") if rows else "<p>No numbers to compare.</p>"
        )

    def show_figures(self) -> None:
        """Display verdicts by engine, and each pair of engines' values against each other."""
        show(self.figures())

    def figures(self) -> list[Figure]:
        """Return verdicts by engine, and a figure for each pair with numbers in common."""
        study, engines = self.judged.study.id, list(self.judged.parts)
        claims = read_table(self.folder / "evaluation" / study / "claims.parquet").to_pandas()
        verdicts = verdicts_figure(claims, read_cells(self.folder, study))
        return [verdicts, *engine_figures(self.folder, engines, study)]

    def _kind(self, kind: str) -> Sequence[Pair]:
        return [pair for pair in self.pairs if pair.kind == kind]


def _rate_row(rate: Rate) -> tuple[object, ...]:
    row = rate.row()
    low, high = 100 * float(str(row["low"])), 100 * float(str(row["high"]))
    note = rate.reason or (f"{rate.unequal} on different points" if rate.unequal else "–")
    return (
        f"{rate.left}, {rate.right}",
        "claims" if rate.kind == CLAIM else "numbers",
        rate.agreed,
        f"{rate.compared} of {rate.items}",
        rounded(float(str(row["share"]))) if rate.compared else "–",
        interval(low, high),
        note,
    )


def _word(pair: Pair) -> str:
    if not pair.compared:
        return "–"
    return "yes" if pair.agrees else "no"
