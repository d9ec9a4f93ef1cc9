"""The session that a notebook runs in: its numbers, errors and parameters, and a live run."""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from replication.design.pipeline import run_single
from replication.report.charts.data import flow_algorithm
from replication.report.notebooks.notebook import assigned_names
from replication.report.notebooks.picture import NOT_CONCLUDED, Html, Text
from replication.study.errors import InputError, RunError
from replication.study.scenario import Scenario

#: How papermill's cell begins.
_INJECTED = "# Parameters\n"
DATA = Path("data/reproduced")
_OURS = (InputError, RunError)


def prepare() -> None:
    """Show four digits and an error of ours as one line; refuse parameters that are not there.

    Raises
    ------
    InputError
        Papermill was given a name that the notebook's cell of parameters does not have.
    """
    pd.set_option("display.float_format", "{:,.4g}".format)
    for kind in _OURS:
        # IPython asks an exception for its own lines before it formats a traceback.
        setattr(kind, "_render_traceback_", _one_line)  # noqa: B010
    _refuse_unknown([str(cell) for cell in _namespace().get("In", [])])


def go_on() -> None:
    """Let a cell that fails say that these results do not support it, and the notebook go on.

    An error of ours stays an error: it says what to do.
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
    """Give the parameters of a function controls, where the notebook is open in JupyterLab.

    A control is what `ipywidgets.interact` takes: a list of choices, or (low, high, step).
    """
    if not is_interactive():
        return Html(
            "<p>In JupyterLab (<code>make lab</code>) controls stand here. Elsewhere set the "
            f"parameters {', '.join(f'<code>{name}</code>' for name in controls)} at the top and "
            "run the notebook again.</p>"
        )
    import ipywidgets

    wait = ipywidgets.interact_manual.options(manual_name="Run")
    return wait(function, **controls) and None


def is_interactive() -> bool:
    """Return whether someone sits before the notebook: JupyterLab or VS Code started its kernel."""
    opened = "JPY_SESSION_NAME" in os.environ or "__vsc_ipynb_file__" in _namespace()
    return opened and find_spec("ipywidgets") is not None


def _one_line(error: Exception) -> list[str]:
    return [f"{type(error).__name__}: {error}"]


def _refuse_unknown(cells: list[str]) -> None:
    for place, cell in enumerate(cells[1:], start=1):
        if cell.startswith(_INJECTED):
            known = assigned_names(ast.parse(cells[place - 1]).body)
            for name in assigned_names(ast.parse(cell).body):
                if name not in known:
                    raise InputError(
                        f"parameters: no parameter {name!r}; there are {', '.join(known)}"
                    )


def _namespace() -> dict[str, Any]:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return {} if shell is None else dict(shell.user_ns)


@dataclass(frozen=True)
class LiveRun:
    """What one run gave: the tables of `Collection.flows` and `.series`, without factors."""

    scenario: Scenario
    flows: pd.DataFrame
    series: pd.DataFrame


def run_live(root: Path, scenario: Scenario, engine: str) -> LiveRun:
    """Run a scenario, as `Collection.simulate` says."""
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        _, tables = run_single(root, DATA, scenario, engine, Path(folder) / "run")
    tcp = [flow.model_dump() for flow in scenario.flows if flow.kind == "tcp"]
    facts = pd.DataFrame(
        [(flow["id"], flow_algorithm(flow), float(flow["segment_bytes"])) for flow in tcp],
        columns=["flow", "algorithm", "segment_bytes"],
    )
    flows, series = (
        tables[name].to_pandas().assign(engine=engine).merge(facts, on="flow", how="left")
        for name in ("flows.csv", "series.csv")
    )
    return LiveRun(scenario, flows, series)
