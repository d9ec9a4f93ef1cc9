"""Repeats: replicates of a plan that are the same run but for a seed that nothing draws from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replication.plan.design import Run
from replication.study.scenario import Scenario

#: Disciplines that decide by chance which packet to drop, or in which queue it waits.
_RANDOM_QUEUES = {"red", "pie", "fq_codel", "fq_pie", "cake"}
#: BBR draws the phase of its gain cycle.
_RANDOM_CONTROL = {"bbr"}
#: Draws the phase of every sender's clock, whatever the scenario says.
_RANDOM_ENGINE = "ns2"


def repeat_warnings(runs: Iterable[Run]) -> Iterator[str]:
    """Yield a sentence for each experiment with points whose replicates repeat each other.

    Parameters
    ----------
    runs
        The design of one study.
    """
    replicates: dict[tuple[str, str, str], list[Scenario]] = {}
    for run in runs:
        if not run.refusal and run.engine != _RANDOM_ENGINE:
            key = run.experiment, run.point, run.engine
            replicates.setdefault(key, []).append(run.scenario)
    points: dict[str, dict[str, bool]] = {}
    for (experiment, point, _), scenarios in replicates.items():
        if len(scenarios) > 1:
            known = points.setdefault(experiment, {})
            known[point] = known.get(point, False) or repeats(scenarios)
    for experiment, found in points.items():
        if count := sum(found.values()):
            yield (
                f"experiment {experiment}: at {count} of {len(found)} points all replicates are "
                "one and the same run, and intervals have no width: nothing in them is drawn; "
                "give flows a start_jitter_s, or an assumed parameter `varies`"
            )


def repeats(scenarios: list[Scenario]) -> bool:
    """Return whether scenarios are the same but for their seed, and draw nothing from it."""
    first = scenarios[0]
    if _draws(first):
        return False
    same = first.model_copy(update={"seed": 1})
    return all(other.model_copy(update={"seed": 1}) == same for other in scenarios[1:])


def _draws(scenario: Scenario) -> bool:
    links = any(
        link.jitter_s > 0
        or any(loss is not None and loss.kind == "random" for loss in (link.loss_ab, link.loss_ba))
        or any(queue.kind in _RANDOM_QUEUES for queue in (link.queue_ab, link.queue_ba))
        for link in scenario.links
    )
    controls = {getattr(flow, "congestion_control", None) for flow in scenario.flows}
    return links or bool(controls & _RANDOM_CONTROL)
