"""Which notebooks a study has."""

from collections.abc import Sequence

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
#: The notebook that `make explain` executes.
SENSITIVITY = "sensitivity"


def notebook_names(study: Study, engines: Sequence[str]) -> list[str]:
    """Return the names of a study's notebooks."""
    types = dict.fromkeys(
        experiment.type if WRITTEN_FOR.get(experiment.type) == study.id else ANY_STUDY
        for experiment in study.experiments
    )
    further = {"engines": len(engines) > 1, "trace_comparison": has_traces(study)}
    return [*types, *(name for name, is_included in further.items() if is_included)]
