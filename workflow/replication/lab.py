"""The functions that notebooks import, in one place.

    from replication import lab

    replication = lab.open(data, root)
    flows = replication.flows("saxena")

Code for a single question is in its notebook; here is the code that notebooks share.
"""

# ruff: noqa: F401, N813  (notebooks use these names)
from replication.design.new_study import example
from replication.report.charts.cells import verdict_look
from replication.report.charts.figure import PUBLISHED_MARK as PUBLISHED
from replication.report.notebooks.collection import (
    Collection,
    column_of,
    open_collection,
    read_study,
)
from replication.report.notebooks.picture import Picture as show  # a chart ends a cell
from replication.report.notebooks.picture import (
    levels,
    look,
    mean_interval,
    numbers,
    question,
    topology,
    unstated,
    verdicts,
)
from replication.report.notebooks.session import design, go_on, interact, prepare, pressure
from replication.study.files import parse_yaml


def open(data: str, root: str = "") -> Collection:
    """Open the collection on a folder of results, in a notebook.

    `data` is relative to the project's folder `root`, by default the nearest one at or above the
    working folder. On results other than the release, a cell that they do not support says so and
    the notebook continues. InputError: something is missing or out of date.
    """
    prepare()
    collection = open_collection(data, root)
    if not collection.is_release:
        go_on()
    return collection
