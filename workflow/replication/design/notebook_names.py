"""Which notebooks a study has, and which belong to no single study."""

from collections.abc import Collection, Sequence

from replication.metrics.trace_source import has_traces
from replication.study.study import Study

#: Type of experiment to the study that its notebook was written for; others use `ANY_STUDY`.
WRITTEN_FOR = {
    "cbr_sweep": "liang_shen",
    "pairwise_fairness": "liang_shen",
    "queuing": "liang_shen",
    "homogeneous_dumbbell": "nishitha",
    "throughput_tables": "saxena",
    "bdp_jain": "dzivhani",
    "cwnd_traces": "kapadia",
}
ANY_STUDY = "any_study"
#: The first lecture, which reads the results of every study.
START_HERE = "start_here"
#: Lectures of no single study, with the studies that they cannot do without.
LECTURES = {START_HERE: ["nishitha"], "bbr": ["kapadia", "rebbr"], "ecn": [], "your_paper": []}
#: The notebook that `make explain` executes.
SENSITIVITY = "sensitivity"


def notebook_names(study: Study, engines: Sequence[str]) -> list[str]:
    """Return the names of a study's notebooks."""
    names = []
    for experiment in study.experiments:
        is_its_own = WRITTEN_FOR.get(experiment.type) == study.id
        names.append(experiment.type if is_its_own else ANY_STUDY)
    if len(engines) > 1:
        names.append("engines")
    if has_traces(study):
        names.append("trace_comparison")
    return list(dict.fromkeys(names))


def lecture_names(studies: Collection[str]) -> list[str]:
    """Return the lectures of no single study for which these studies are enough."""
    return [name for name, needed in LECTURES.items() if set(needed) <= set(studies)]


def studies_of_lecture(lecture: str, studies: Sequence[str]) -> list[str]:
    """Return which of the studies a lecture of no single study reads."""
    return list(studies) if lecture == START_HERE else LECTURES[lecture]
