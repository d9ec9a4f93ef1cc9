"""What the notebook on sensitivity shows of one study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replication.plan.config import load_study
from replication.report.charts.spread import spread_figures
from replication.report.notebooks.experiment import find_project
from replication.report.notebooks.markup import Html, show, table
from replication.sensitivity.claim_sentence import claim_sentence
from replication.sensitivity.robustness_rows import RobustnessRows
from replication.study.sensitivity_settings import Scale, load_sensitivity
from replication.study.study import Study


@dataclass(frozen=True)
class SensitivityNotebook:
    """What `make sensitivity` found on one study."""

    study: Study
    rows: RobustnessRows
    scale: Scale

    @classmethod
    def open(cls, study: str, data: str, root: str = "") -> SensitivityNotebook:
        """Open the notebook.

        Parameters
        ----------
        study
            Id of the study.
        data
            Folder of results, relative to `root`.
        root
            The project's folder; by default the nearest one above the working folder.

        Raises
        ------
        InputError
            The project, the study or its results are not there.
        """
        project = Path(root) if root else find_project(Path.cwd())
        folder = Path(data) if Path(data).is_absolute() else project / data
        rows = RobustnessRows.load(folder / "sensitivity" / study, study)
        scale = load_sensitivity(project).of(study).exploration
        return cls(load_study(project, study), rows, scale)

    def design(self) -> Html:
        """Return how many design points of each kind there are."""
        kinds: dict[str, int] = {}
        for row in self.rows.points:
            kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
        rows = [(kind, number) for kind, number in kinds.items()]
        return Html(table(["Kind of design point", "Points"], rows, self.study.title))

    def claims(self) -> Html:
        """Return each claim with its word and the evidence behind it."""
        claims = {claim.id: claim for claim in self.study.claims}
        rows = []
        for row in self.rows.claims:
            claim = claims[row["claim"]]
            rows.append(
                (claim.id, claim.quote, row["word"], claim_sentence(row, claim, self.scale))
            )
        return Html(table(["Claim", "Words of the paper", "Word", "Evidence"], rows, "Claims"))

    def ranges(self) -> Html:
        """Return the range that each published number's counterpart reaches."""
        rows = [
            (
                r["table"],
                r["row"],
                r["column"],
                r["unit"],
                r["published"],
                r["lowest"],
                r["highest"],
                {"true": "yes", "false": "no"}.get(r["published_in_range"], "–"),
            )
            for r in self.rows.cells
        ]
        head = ["Table", "Row", "Column", "Unit", "Published", "Lowest", "Highest", "In range"]
        return Html(table(head, rows, "Ranges over all designs"))

    def show_spread(self) -> None:
        """Show what varies: a chart for each headline metric."""
        show(spread_figures(self.rows.spread, self.study.id))
