"""The session of a notebook: format of numbers, errors, controls, and live runs."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from replication.design.pipeline import run_single
from replication.report.charts.data import flow_algorithm
from replication.report.notebooks.picture import NOT_CONCLUDED, Html, Text
from replication.study.errors import InputError, RunError
from replication.study.parameter import plain_values
from replication.study.scenario import Scenario
from replication.study.study import Experiment, Study, parameters_of
from replication.study.template import instantiate, replicate_seed
from replication.study.variation import drawn

_OURS = (InputError, RunError)
DATA = Path("data/reproduced")
Value = TypeVar("Value")


def prepare() -> None:
    """Show four digits of numbers, and errors of ours as one line."""
    pd.set_option("display.float_format", "{:,.4g}".format)
    for kind in _OURS:
        # IPython calls this method, if there is one, instead of formatting a traceback.
        setattr(kind, "_render_traceback_", lambda e: [f"{type(e).__name__}: {e}"])  # noqa: B010


def go_on() -> None:
    """Let a failing cell print that the results do not support it, and run the next cell.

    Errors of ours still stop the notebook, since they tell the user what to do.
    """
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    def say(shell: Any, kind: type[BaseException], error: Exception, trace: Any, **_: Any) -> None:
        if isinstance(error, _OURS):
            shell.showtraceback((kind, error, trace))
        else:
            display(Text(f"{NOT_CONCLUDED} ({kind.__name__}: {error})"))  # type: ignore[no-untyped-call]

    def forgive(result: Any) -> None:
        if not isinstance(result.error_in_exec, _OURS):
            result.error_in_exec = None

    shell = get_ipython()
    assert shell is not None
    shell.set_custom_exc((Exception,), say)  # type: ignore[no-untyped-call]
    shell.events.register("post_run_cell", forgive)


def interact(function: Callable[..., Any], **controls: Any) -> Any:
    """Show `ipywidgets.interact` controls for a function, if the notebook is open in JupyterLab."""
    if not _is_interactive():
        return Html(
            "<p>In JupyterLab (<code>make lab</code>) controls are shown here. Elsewhere set the "
            f"parameters {', '.join(f'<code>{name}</code>' for name in controls)} at the top and "
            "run the notebook again.</p>"
        )
    import ipywidgets

    wait = ipywidgets.interact_manual.options(manual_name="Run")
    return wait(function, **controls) and None


def _is_interactive() -> bool:
    """Return whether JupyterLab or VS Code started the kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    is_vscode = shell is not None and "__vsc_ipynb_file__" in shell.user_ns
    return ("JPY_SESSION_NAME" in os.environ or is_vscode) and find_spec("ipywidgets") is not None


def design(
    study: Study, experiment: str, levels: Mapping[str, str], engine: str = "ns3", **parameters: Any
) -> Scenario:
    """Design one scenario: a point of an experiment, with changed parameters.

    `levels` maps factors to keys of levels; other factors have the experiment's defaults, and
    `parameters` override levels. The study's substitutions for `engine` apply.
    InputError: no such experiment, factor, level or parameter, or no valid scenario.
    """
    found = experiment_of(study, experiment)
    values = plain_values(parameters_of(study, found)) | drawn(study, found, 0)
    substitution = study.substituted(engine)
    values |= substitution.set if substitution else {}
    for name in parameters:
        _known(values, name, f"study {study.id}: no parameter")
    factors = {factor.id: factor for factor in found.factors}
    for name, key in levels.items():
        factor = _known(factors, name, f"experiment {found.id}: no factor")
        of_level = {level.key: level.set for level in factor.levels}
        values |= _known(of_level, key, f"factor {name}: no level")
    seed = replicate_seed(study.id, experiment, 0)
    return instantiate(found, values | parameters, seed)


def experiment_of(study: Study, experiment: str) -> Experiment:
    """Return an experiment of a study; InputError lists the known ones."""
    known = {e.id: e for e in study.experiments}
    return _known(known, experiment, f"study {study.id}: no experiment")


def _known(known: Mapping[str, Value], key: str, what: str) -> Value:
    if key not in known:
        raise InputError(f"{what} {key!r}; {', '.join(known)}")
    return known[key]


def pressure(scenario: Scenario) -> float:
    """Return the windows of all TCP flows divided by the capacity of the path and its queue.

    Up to 1 there is no congestion loss. The path is that of the first TCP flow over the monitored
    link, without the share of CBR flows.
    """
    tcp = [flow for flow in scenario.flows if flow.kind == "tcp"]
    watched = scenario.monitors[0].link
    ends = {tcp[0].source, tcp[0].destination}
    path = [link for link in scenario.links if link.id == watched or {link.a, link.b} & ends]
    link = next(link for link in path if link.id == watched)
    left_bps = link.rate_bps - sum(f.rate_bps for f in scenario.flows if f.kind == "cbr")
    pipe_bytes = 2 * sum(part.delay_s for part in path) * max(left_bps, 0) / 8
    queue = link.queue_ab.model_dump()
    packets = (queue.get("limit_packets") or 0) + (queue.get("device_queue_packets") or 0)
    queue_bytes = queue.get("limit_bytes") or packets * tcp[0].packet_bytes
    windows = [
        (flow.maximum_window_bytes or math.inf) * flow.packet_bytes / flow.segment_bytes
        for flow in tcp
    ]
    return sum(windows) / (pipe_bytes + queue_bytes)


@dataclass(frozen=True)
class LiveRun:
    """Results of one run: the tables of `Collection.flows` and `.series` without factors."""

    scenario: Scenario
    flows: pd.DataFrame
    series: pd.DataFrame


def run_live(root: Path, scenario: Scenario, engine: str) -> LiveRun:
    """Run a scenario; errors are those of `Collection.simulate`."""
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        _, tables = run_single(root, DATA, scenario, engine, Path(folder) / "run")
    facts = flow_facts({"": scenario.model_dump()}).drop(columns="scenario")
    flows, series = (
        tables[name].to_pandas().assign(engine=engine).merge(facts, on="flow", how="left")
        for name in ("flows.csv", "series.csv")
    )
    return LiveRun(scenario, flows, series)


def flow_facts(scenarios: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the congestion control and segment size of each TCP flow."""
    rows = [
        (name, flow["id"], flow_algorithm(flow), float(flow["segment_bytes"]))
        for name, scenario in scenarios.items()
        for flow in scenario["flows"]
        if flow["kind"] == "tcp"
    ]
    return pd.DataFrame(rows, columns=["scenario", "flow", "algorithm", "segment_bytes"])
