"""What a paper asks, and what it does not state."""

import pandas as pd
from IPython.display import Markdown

from replication.report.notebooks.collection import Collection
from replication.report.pages.assumptions import plain, plausible
from replication.study.study import parameters_of


def question(collection: Collection, study: str, kind: str) -> Markdown:
    """Return the paper and the questions of its experiments of a type."""
    document = collection.study(study)
    paper = document.bibliography
    year = f", {paper.year}" if paper.year else ""
    lines = [f"*{paper.title}* ({', '.join(paper.authors)}{year})\n"]
    for experiment in document.experiments:
        if experiment.type == kind:
            lines.append(f"- **{experiment.title}**: {experiment.question} ({experiment.place})")
    return Markdown("\n".join(lines))


def unstated(collection: Collection, study: str, experiment: str) -> pd.DataFrame:
    """Return the assumptions of an experiment: value, plausible range, reason."""
    document = collection.study(study)
    parameters = parameters_of(document, collection.experiment(study, experiment))
    rows = []
    for name, parameter in parameters.items():
        if (assumed := parameter.assumed) is not None:
            reason = " ".join(assumed.reason.split())
            rows.append((name, plain(parameter.value), parameter.unit, plausible(assumed), reason))
    return pd.DataFrame(rows, columns=["parameter", "value", "unit", "plausible", "reason"])
