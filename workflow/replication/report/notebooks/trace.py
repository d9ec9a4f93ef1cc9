"""What the notebook on published traces shows of one study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from replication.compare.trace_comparison import COMPARISON, NEARNESS, RAW, WINDOWS
from replication.measure.window import LABELS
from replication.plan.config import load_study
from replication.report.charts.overlay import overlay_figures
from replication.report.notebooks.experiment import find_project
from replication.report.notebooks.markup import Html, interval, percent, rounded, show, table
from replication.study.errors import InputError
from replication.study.parquet import read_parquet
from replication.study.seal import open_sealed
from replication.study.study import Study


@dataclass(frozen=True)
class TraceNotebook:
    """The comparison of a study's published traces.

    Attributes
    ----------
    study
        The study.
    comparison, nearness, windows
        Its rows of the tables that `replicate compare-traces` writes.
    """

    study: Study
    comparison: pd.DataFrame
    nearness: pd.DataFrame
    windows: pd.DataFrame

    @classmethod
    def open(cls, study: str, data: str, root: str = "") -> TraceNotebook:
        """Open the notebook; parameters as for `report.notebooks.experiment.ExperimentNotebook`.

        Raises
        ------
        InputError
            The project, the study or its comparison is not there.
        """
        project = Path(root) if root else find_project(Path.cwd())
        folder = Path(data) if Path(data).is_absolute() else project / data
        document = load_study(project, study)
        for name in (COMPARISON, NEARNESS, WINDOWS):
            if not (folder / name).is_file():
                raise InputError(
                    f"{folder / name}: no such file; run `replicate compare-traces {study}` first"
                )
        tables = (
            pd.read_csv(open_sealed(folder / COMPARISON)),
            pd.read_csv(open_sealed(folder / NEARNESS)),
            read_parquet(folder / WINDOWS).to_pandas(),
        )
        comparison, nearness, windows = (rows[rows["study"] == study] for rows in tables)
        if comparison.empty:
            raise InputError(f"{folder / COMPARISON}: has no trace of study {study}")
        return cls(document, comparison, nearness, windows)

    def evidence(self) -> Html:
        """Return which traces there are, and whether as raw files or as summary figures."""
        rows = []
        for trace, part in self.comparison.groupby("trace", sort=False):
            flows = ", ".join(dict.fromkeys(part["flow"]))
            engines = ", ".join(sorted(set(part["engine"])))
            rows.append((trace, flows, ", ".join(dict.fromkeys(part["evidence"])), engines))
        missing = not (self.comparison["evidence"] == RAW).all()
        note = (
            "<p>Where the raw trace was not there, only its summary figures are compared.</p>"
            if missing
            else ""
        )
        return Html(table(["Trace", "Flows", "Evidence", "Engines"], rows, "Traces") + note)

    def nearness_table(self) -> Html:
        """Return to what share of the flows each engine is the nearest, by figure."""
        rows = [
            (LABELS[row["metric"]], row["engine"], row["flows"], rounded(row["share"]))
            for row in self.nearness.to_dict("records")
        ]
        if not rows:
            return Html("<p>One engine ran: there is none to be nearer than.</p>")
        head = ["Figure", "Engine", "Flows", "Share of flows to which it is the nearest"]
        return Html(table(head, rows, "Nearest engine"))

    def comparison_tables(self) -> Html:
        """Return the published and reproduced figures, a table a trace."""
        head = ["Flow", "Figure", "Unit", "Engine", "Published", "Reproduced", "95 % interval"]
        parts = []
        for trace, part in self.comparison.groupby("trace", sort=False):
            rows = [
                (
                    row["flow"],
                    LABELS[row["metric"]],
                    row["unit"],
                    row["engine"],
                    rounded(row["published"]),
                    rounded(row["reproduced_mean"]),
                    interval(row["reproduced_low"], row["reproduced_high"]),
                    row["n"],
                    percent(row["relative_deviation"]),
                )
                for row in part.to_dict("records")
            ]
            parts.append(table([*head, "n", "Deviation"], rows, f"Trace {trace}"))
        return Html("".join(parts))

    def show_figures(self) -> None:
        """Display the overlays."""
        show(overlay_figures(self.windows, self.comparison))
