"""The functions that notebooks import, in one place.

    from replication import lab

    replication = lab.open(data, root)
    flows = replication.flows("saxena")
    lab.dumbbell(["cubic", "bbr"], rtt_ms=[20, 80], queue="fq_codel").run().plot()

Code for a single question is in its notebook; here is the code that notebooks share.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replication.report.notebooks.collection import Collection

_NOTEBOOKS = "replication.report.notebooks"
#: Where names come from. A module is imported when one of its names is first used, since pandas and
#: Altair take seconds.
_PLACES = {
    "replication.design.new_study": ("example",),
    "replication.metrics.metric_model": ("display_unit",),
    "replication.report.charts.cells": ("verdict_look",),
    "replication.report.charts.data": ("proper",),
    "replication.base.files": ("parse_yaml",),
    f"{_NOTEBOOKS}.collection": ("Collection", "column_of", "open_collection", "read_study"),
    f"{_NOTEBOOKS}.dumbbell": ("dumbbell",),
    f"{_NOTEBOOKS}.exercise": ("check",),
    f"{_NOTEBOOKS}.paper": ("question", "unstated"),
    f"{_NOTEBOOKS}.picture": (
        *("levels", "line_name", "look", "mean_interval", "numbers", "topology", "verdicts"),
    ),
    f"{_NOTEBOOKS}.session": ("design", "interact", "pressure"),
}
_PLACE_OF: dict[str, str] = {}
for _place, _names in _PLACES.items():
    _PLACE_OF |= dict.fromkeys(_names, _place)
#: Names that are other ones where they come from. `show` ends a cell with a chart.
_RENAMED = {
    "PUBLISHED": ("replication.report.charts.figure", "PUBLISHED_MARK"),
    "show": (f"{_NOTEBOOKS}.picture", "Picture"),
}


def __getattr__(name: str) -> Any:
    place, real_name = _RENAMED.get(name, (_PLACE_OF.get(name), name))
    if place is None:
        raise AttributeError(f"lab has no {name!r}; it has {', '.join(__dir__())}", name=name)
    return getattr(import_module(place), real_name)


def __dir__() -> list[str]:
    return sorted(["open", *_PLACE_OF, *_RENAMED])


def open(data: str = "data/release", root: str = "") -> "Collection":
    """Open the collection on a folder of results.

    `data` is relative to the project's folder `root`, by default the nearest one at or above the
    working folder. On results other than the release, a cell that they do not support says so and
    the notebook continues. InputError: something is missing or out of date.
    """
    from replication.report.notebooks.collection import open_collection
    from replication.report.notebooks.session import go_on, prepare

    prepare()
    collection = open_collection(data, root)
    if not collection.is_release:
        go_on()
    return collection
