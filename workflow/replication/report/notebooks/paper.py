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
    lines += [
        f"- **{e.title}**: {e.question} ({e.place})" for e in document.experiments if e.type == kind
    ]
    return Markdown("\n".join(lines))


def unstated(collection: Collection, study: str, experiment: str) -> pd.DataFrame:
    """Return the assumptions of an experiment: value, plausible range, reason."""
    document = collection.study(study)
    parameters = parameters_of(document, collection.experiment(study, experiment))
    rows = [
        (name, plain(p.value), p.unit, plausible(p.assumed), " ".join(p.assumed.reason.split()))
        for name, p in parameters.items()
        if p.assumed is not None
    ]
    return pd.DataFrame(rows, columns=["parameter", "value", "unit", "plausible", "reason"])
