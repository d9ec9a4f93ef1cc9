"""Which notebooks a study has: those written for it, one a type of experiment, and further ones.

A notebook of a type tells of one paper; any other study has `ANY_STUDY`. A further notebook is a
file ``notebooks/<name>.ipynb`` with the parameters of all notebooks and an entry in `FURTHER`,
which says which studies have it and what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replication.measure.trace_folder import has_traces
from replication.study.study import Study

#: By type of experiment, the study whose paper its notebook tells of.
WRITTEN_FOR = {
    "cbr_sweep": "liang_shen",
    "pairwise_fairness": "liang_shen",
    "queuing": "liang_shen",
    "homogeneous_dumbbell": "nishitha",
    "throughput_tables": "saxena",
    "bdp_jain": "dzivhani",
    "cwnd_traces": "kapadia",
}
#: The notebook of a study that has none of its own.
ANY_STUDY = "any_study"
#: Notebooks on no study, which the report does not have.
GUIDES = ("start_here", "your_paper", "maps")
#: Name of the notebook that `make explain` executes.
SENSITIVITY = "sensitivity"


@dataclass(frozen=True)
class FurtherNotebook:
    """A notebook that is not about one type of experiment.

    Attributes
    ----------
    name
        The notebook's file without ``.ipynb``.
    wanted
        Whether a study has it, by the study and the engines of the run.
    inputs
        Files in the data folder that it reads beside the study's results and evaluation;
        ``{study}`` stands for the study's id. A rule must make them.
    """

    name: str
    wanted: Callable[[Study, Sequence[str]], bool]
    inputs: tuple[str, ...] = ()


FURTHER: tuple[FurtherNotebook, ...] = (
    FurtherNotebook(
        name="engines",
        wanted=lambda study, engines: len(engines) > 1,
    ),
    FurtherNotebook(
        name="trace_comparison",
        wanted=lambda study, engines: has_traces(study),
        inputs=("trace_comparison.csv", "trace_nearness.csv", "trace_windows.parquet"),
    ),
)


def notebook_names(study: Study, engines: Sequence[str]) -> list[str]:
    """Return the names of a study's notebooks: those of its types, then further ones."""
    types = dict.fromkeys(
        experiment.type if WRITTEN_FOR.get(experiment.type) == study.id else ANY_STUDY
        for experiment in study.experiments
    )
    return [*types, *(further.name for further in FURTHER if further.wanted(study, engines))]


def further(name: str) -> FurtherNotebook | None:
    """Return the further notebook of that name; None where it is one of an experiment type."""
    return next((entry for entry in FURTHER if entry.name == name), None)
