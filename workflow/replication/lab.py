"""The functions that the notebooks import.

from replication import lab

replication = lab.open(data, root)
flows = replication.flows("saxena")
"""

from __future__ import annotations

# ruff: noqa: F401  (notebooks use these names)
from replication.design.new_study import example
from replication.report.charts.figure import PUBLISHED_MARK as PUBLISHED
from replication.report.notebooks.collection import (
    Collection,
    column_of,
    open_collection,
    read_study,
)
from replication.report.notebooks.picture import (
    Picture,
    levels,
    look,
    mean_interval,
    numbers,
    question,
    topology,
    unstated,
    verdict_look,
    verdicts,
)
from replication.report.notebooks.session import go_on, interact, prepare
from replication.report.notebooks.trial import design, pressure
from replication.study.files import parse_yaml

#: Show a chart at the end of a cell.
show = Picture


def open(data: str, root: str = "") -> Collection:
    """Open the collection on a folder of results, in a notebook.

    `data` is relative to the project's folder: data/release or data/reproduced. `root` is the
    project's folder, by default the nearest at or above the working folder. InputError, with the
    remedy, for missing or outdated results and unknown papermill parameters. On results other than
    the release a cell that lacks data prints a message, and the notebook continues.
    """
    prepare()
    collection = open_collection(data, root)
    if not collection.is_release:
        go_on()
    return collection
