"""The session of a notebook: format of numbers, errors, controls, and scenarios to run."""

import functools
import math
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import pandas as pd
from IPython.core.getipython import get_ipython
from IPython.display import Markdown, display

from replication.base.errors import InputError, RunError
from replication.report.notebooks.live import is_in_jupyter, show_differences
from replication.report.notebooks.names import check_name
from replication.report.notebooks.picture import NOT_CONCLUDED
from replication.report.notebooks.queue import queue_like
from replication.study.link import Link
from replication.study.scenario import Scenario
from replication.study.study import Experiment, Study
from replication.study.template import instantiate, replicate_seed
from replication.study.variation import values_of

_OURS = (InputError, RunError)


def prepare() -> None:
    """Show four digits of numbers, errors of ours as one line, and studies in a few lines."""
    pd.set_option("display.float_format", "{:,.4g}".format)
    for kind in _OURS:
        # IPython calls this method, if there is one, instead of formatting a traceback.
        setattr(kind, "_render_traceback_", lambda e: [f"{type(e).__name__}: {e}"])  # noqa: B010
    for method in ("__repr__", "__str__"):
        setattr(Study, method, study_in_brief)
        setattr(Experiment, method, experiment_in_brief)


def study_in_brief(study: Study) -> str:
    """Return a study's title and experiments, and how to see what can be changed."""
    lists = f"replication.parameters({study.id!r}), replication.levels({study.id!r})"
    lines = [f"Study {study.id}: {study.bibliography.title}"]
    lines += [f"  {experiment_in_brief(experiment)}" for experiment in study.experiments]
    lines += [f"  {len(study.tables)} tables, {len(study.claims)} claims; lists: {lists}"]
    return "\n".join(lines)


def experiment_in_brief(experiment: Experiment) -> str:
    """Return an experiment's factors with their numbers of levels."""
    factors = [f"{factor.id} ({len(factor.levels)} levels)" for factor in experiment.factors]
    return f"experiment {experiment.id}: {experiment.title}; {', '.join(factors)}"


def go_on() -> None:
    """Let a failing cell print that the results do not support it, and run the next cell.

    Errors of ours still stop the notebook, since they tell the user what to do.
    """

    def say(shell: Any, kind: type[BaseException], error: Exception, trace: Any, **_: Any) -> None:
        if isinstance(error, _OURS):
            shell.showtraceback((kind, error, trace))
        else:
            display(Markdown(f"{NOT_CONCLUDED} ({kind.__name__}: {error})"))

    def forgive(result: Any) -> None:
        if not isinstance(result.error_in_exec, _OURS):
            result.error_in_exec = None

    shell = get_ipython()
    if shell is None:
        # Plain Python has no cells: an error ends the script.
        return
    shell.set_custom_exc((Exception,), say)
    shell.events.register("post_run_cell", forgive)


def interact(function: Callable[..., Any], **controls: Any) -> Any:
    """Show `ipywidgets.interact` controls in JupyterLab and VS Code, elsewhere what to do."""
    if not is_in_jupyter() or not find_spec("ipywidgets"):
        return Markdown(
            "In JupyterLab (`make lab`) controls are shown here. Elsewhere set the parameters "
            f"{', '.join(f'`{name}`' for name in controls)} at the top and run the notebook again."
        )
    import ipywidgets

    @functools.wraps(function)
    def shown(**given: Any) -> None:
        result = function(**given)
        if result is not None:
            display(result)
        show_differences()

    wait = ipywidgets.interact_manual.options(manual_name="Run")
    return wait(shown, **controls) and None


def experiment_of(study: Study, experiment: str) -> Experiment:
    """Return an experiment of a study; InputError names the nearest one."""
    known = [each.id for each in study.experiments]
    check_name(f"study {study.id}: experiment", experiment, known)
    return study.experiment(experiment)


def design(
    study: Study, experiment: str, levels: Mapping[str, str], engine: str = "ns3", **parameters: Any
) -> Scenario:
    """Design one scenario: a point of an experiment, with changed parameters.

    `levels` maps factors to keys of levels; other factors have the experiment's defaults, and
    `parameters` override levels; a queue may be just its kind. The study's substitutions for
    `engine` apply. InputError: no such level or parameter, or no valid scenario.
    """
    document = experiment_of(study, experiment)
    values = values_of(study, document, engine=engine)
    factors = {}
    for factor in document.factors:
        factors[factor.id] = {level.key: level.set for level in factor.levels}
    of_levels = f"`replication.levels({study.id!r})`"
    for name, key in levels.items():
        check_name(f"experiment {experiment}: factor", name, factors, of_levels)
        check_name(f"factor {name}: level", key, factors[name], of_levels)
        values |= factors[name][key]
    of_parameters = f"`replication.parameters({study.id!r})`"
    for name, value in parameters.items():
        check_name(f"study {study.id}: parameter", name, values, of_parameters)
        values[name] = queue_like(value, values[name])
    return instantiate(document, values, replicate_seed(study.id, experiment, 0))


def pressure(scenario: Scenario, with_queue: bool = True) -> float:
    """Return the windows of all TCP flows divided by what the path and its queue hold for them.

    Up to 1 there is no congestion loss. Without the queue, up to 1 the windows cannot fill the
    link. The path is that of the first TCP flow over the monitored link. CBR flows take their rates
    from it, and a share of the queue in proportion to their packets; an AQM counts with the queue
    that it lets stand.
    """
    tcp = [flow for flow in scenario.flows if flow.kind == "tcp"]
    ends = {tcp[0].source, tcp[0].destination}
    path = []
    for part in scenario.links:
        if part.id == scenario.monitors[0].link:
            link = part
            path.append(part)
        elif {part.a, part.b} & ends:
            path.append(part)
    cbr = [flow for flow in scenario.flows if flow.kind == "cbr"]
    left_bps = max(link.rate_bps - sum(flow.rate_bps for flow in cbr), 0)
    room_bytes = 2 * sum(part.delay_s for part in path) * left_bps / 8
    if with_queue:
        packets_of_cbr = sum(flow.rate_bps / flow.packet_bytes for flow in cbr)
        packets = left_bps / tcp[0].packet_bytes
        share = packets / (packets + packets_of_cbr) if packets else 0.0
        room_bytes += share * _standing_bytes(link, tcp[0].packet_bytes)
    windows_bytes = []
    for flow in tcp:
        segments = (flow.maximum_window_bytes or math.inf) / flow.segment_bytes
        windows_bytes.append(segments * flow.packet_bytes)
    return sum(windows_bytes) / room_bytes if room_bytes else math.inf


def _standing_bytes(link: Link, packet_bytes: int) -> float:
    """Return the queue of a link up to which nothing is dropped, if it has packets of one size."""
    queue = link.queue_ab.model_dump()
    device_bytes = queue.get("device_queue_packets", 0) * packet_bytes
    if "target_s" in queue:
        return float(device_bytes + queue["target_s"] * link.rate_bps / 8)
    if queue["kind"] == "red":
        of_bytes = queue["mean_packet_bytes"] if queue["byte_mode"] else packet_bytes
        return float(device_bytes + queue["minimum_threshold_packets"] * of_bytes)
    return float(queue.get("limit_bytes") or queue["limit_packets"] * packet_bytes + device_bytes)
