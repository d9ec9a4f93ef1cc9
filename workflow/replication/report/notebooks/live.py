"""Live runs: one scenario on this machine, its tables, its picture, and what to know of the engine.

A cell with live runs also shows the known differences of engines that concern them.
"""

from __future__ import annotations

import html
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.display import HTML, display
from pydantic import ValidationError

from replication.base.errors import InputError, describe
from replication.design.single_run import is_built, run_single
from replication.engines.catalogue import ENGINES
from replication.engines.model import crossings_by_link
from replication.engines.path import FlowPaths
from replication.report.notebooks.names import check_name
from replication.study.scenario import Scenario

if TYPE_CHECKING:
    # They import packages that take longer than many runs.
    import pandas as pd

    from replication.compare.agreement import EngineDifference
    from replication.report.notebooks.picture import Picture

#: Runs that last longer show their progress.
PATIENCE_S = 3.0
#: Where engines are built, below the project's folder.
BUILT = Path("data/reproduced")


@dataclass(frozen=True)
class LiveRun:
    """One run: its tables, as of `Collection.flows` and `.series` without factors.

    `flows` has in addition `base_rtt_ms`, each flow's round trip on an empty path.
    """

    flows: pd.DataFrame
    series: pd.DataFrame
    scenario: Scenario
    engine: str
    root: Path

    def plot(self) -> Picture:
        """Return windows, round trips, queue and rates over time."""
        from replication.report.notebooks.run_chart import run_chart

        return run_chart(self.flows, self.series, self.scenario, self.engine)

    @property
    def differences(self) -> list[EngineDifference]:
        """The known differences between engines that concern this run."""
        return differences_of(self.root, self.scenario, self.engine)

    def _repr_html_(self) -> str:
        return str(self.flows.to_html(index=False, border=0, na_rep="–"))

    def __repr__(self) -> str:
        return self.flows.to_string(index=False, na_rep="–")


def flow_facts(scenarios: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the congestion control and segment size of each TCP flow."""
    import pandas as pd

    from replication.report.charts.data import flow_algorithm

    rows = []
    for name, scenario in scenarios.items():
        for flow in scenario["flows"]:
            if flow["kind"] == "tcp":
                size_bytes = float(flow["segment_bytes"])
                rows.append((name, flow["id"], flow_algorithm(flow), size_bytes))
    return pd.DataFrame(rows, columns=["scenario", "flow", "algorithm", "segment_bytes"])


def can_run(root: Path, engine: str) -> bool:
    """Return whether `run_live` can start an engine on this machine."""
    return is_built(root, BUILT, engine)


def run_live(root: Path, scenario: Scenario | Mapping[str, Any], engine: str) -> LiveRun:
    """Run a scenario, or its JSON document, on an engine of the project in `root`.

    InputError: it is no scenario, or the engine is not built or refuses it; RunError: the run
    failed.
    """
    check_name("engine", engine, ENGINES)
    if not isinstance(scenario, Scenario):
        try:
            scenario = Scenario.model_validate(scenario)
        except ValidationError as error:
            raise InputError(f"scenario: {describe(error, scenario)}") from None
    expected_s = ENGINES[engine].cost_s(scenario, crossings_by_link(scenario))
    with (
        tempfile.TemporaryDirectory(prefix="live-") as folder,
        _progress(f"{engine}: simulating {scenario.duration_s:g} s", expected_s),
    ):
        _, tables = run_single(root, BUILT, scenario, engine, Path(folder) / "run")
    facts = flow_facts({"": scenario.model_dump()}).drop(columns="scenario")

    def table(name: str) -> pd.DataFrame:
        rows: pd.DataFrame = tables[name].to_pandas().assign(engine=engine)
        return rows.merge(facts, on="flow", how="left")

    paths = FlowPaths(scenario)
    base_rtt_ms = {}
    for flow in scenario.flows:
        links = paths.links(flow.source, flow.destination)
        base_rtt_ms[flow.id] = 2e3 * sum(link.delay_s for link, _ in links)
    flows = table("flows.csv")
    flows["base_rtt_ms"] = flows["flow"].map(base_rtt_ms)
    run = LiveRun(flows, table("series.csv"), scenario, engine, root)
    _note(run)
    return run


def is_in_jupyter() -> bool:
    """Return whether JupyterLab or VS Code shows what cells display."""
    started = getattr(get_ipython(), "user_ns", {}).keys() | os.environ
    return bool(started & {"JPY_SESSION_NAME", "__vsc_ipynb_file__"})


@contextmanager
def _progress(words: str, expected_s: float) -> Iterator[None]:
    """Say after `PATIENCE_S` and then each second how long a run takes; leave nothing behind."""
    if not is_in_jupyter() and not sys.stdout.isatty():
        yield
        return
    ended, start_s = threading.Event(), time.monotonic()
    about = f" of about {expected_s:.0f} s" if expected_s > PATIENCE_S else " s"
    line = words + ", {:.0f}" + about

    def report() -> None:
        if ended.wait(PATIENCE_S):
            return
        while True:
            print("\r" + line.format(time.monotonic() - start_s), end="", flush=True)
            if ended.wait(1.0):
                print("\r" + " " * (len(line) + 8) + "\r", end="", flush=True)
                return

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def differences_of(root: Path, scenario: Scenario, engine: str) -> list[EngineDifference]:
    """Return the known differences of an engine that concern a scenario.

    Those that name the scenario's variants or queues come first.
    """
    from replication.compare.agreement import load_differences

    document = scenario.model_dump(mode="json")
    concerning = []
    for entry in load_differences(root).differences:
        if engine in entry.engines and entry.concerns.holds(document):
            concerning.append(entry)
    return sorted(concerning, key=lambda entry: not _is_specific(entry))


def _is_specific(entry: EngineDifference) -> bool:
    return bool(entry.concerns.congestion_controls or entry.concerns.queues)


def differences_table(runs: Mapping[str, list[EngineDifference]]) -> HTML:
    """Return known differences by engine as a folded list; general ones by their titles only."""
    items = ""
    for engine, entries in runs.items():
        general = []
        for entry in entries:
            title = html.escape(entry.title)
            if not _is_specific(entry):
                general.append(title)
                continue
            does = {str(name): words for name, words in entry.engines.items()}
            others = "; ".join(f"{name}: {words}" for name, words in does.items() if name != engine)
            words = html.escape(f"{engine}: {does[engine]}. Elsewhere: {others}.")
            items += f"<li><b>{title}.</b> {words}</li>\n"
        if general:
            items += f"<li>{engine}, with any variant: {'; '.join(general)}.</li>\n"
    count = sum(len(entries) for entries in runs.values())
    return HTML(
        f"<details><summary>Known engine differences that concern these runs ({count})</summary>\n"
        f"<ul>\n{items}</ul></details>"
    )


#: Differences of the runs of the present cell, by engine and id.
_noted: dict[str, dict[str, EngineDifference]] = {}


def _note(run: LiveRun) -> None:
    """Keep what concerns a run until its cell ends; without a notebook do nothing."""
    if (shell := get_ipython()) is None:
        return
    shell.events.register("post_run_cell", show_differences)
    _noted.setdefault(run.engine, {}).update({entry.id: entry for entry in run.differences})


def show_differences(*_: Any) -> None:
    """Show what is known of the engines of all runs since the last call, each entry once."""
    runs = {engine: list(entries.values()) for engine, entries in _noted.items() if entries}
    _noted.clear()
    if runs:
        display(differences_table(runs))
