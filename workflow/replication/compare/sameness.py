"""Whether new sources of an engine give the results of its generation (`replicate engines --same`).

Compared are the tables of every canonical scenario, and those of one stored run of each experiment,
set of variants, queues and kinds of loss. Lines that no canonical scenario executes must be
unchanged, since equal tables say nothing about them.
"""

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from replication.design.config import load_study, load_tier, study_ids
from replication.design.design import Run, design_study
from replication.design.pipeline import run_single
from replication.engines.canonical import canonical_scenarios, digests_of_runs
from replication.engines.executed_lines import unexecuted_lines
from replication.engines.generation import Generation, Sources, today
from replication.engines.model import Engine
from replication.simulate.run import read_table
from replication.simulate.store import Store
from replication.study.errors import InputError
from replication.study.files import digest_of
from replication.study.scenario import Scenario, TcpFlow
from replication.study.table import FLOW_NUMBERS, read_parquet

#: The tables that must be equal; run.json names the program's version.
_COMPARED = ("flows.csv", "series.csv")
#: The columns that the release has too.
_RELEASED = ["flow", *FLOW_NUMBERS]
#: Tiers whose runs may be stored.
_TIERS = ("quick", "paper")


@dataclass(frozen=True)
class Sameness:
    """Compares an engine's present program with the results of its generation.

    `data` has the store of finished runs; where it lacks one, the release has its flows.
    """

    root: Path
    data: Path
    engine: Engine

    def extended(self, generation: Generation) -> Generation:
        """Return the generation with the present sources.

        Raises
        ------
        InputError
            A result differs, a line that no canonical scenario executes has changed, or a kind of
            run is stored nowhere. The message names it.
        """
        canonical = self._canonical()
        for scenario, digest in generation.canonical.items():
            if scenario not in canonical:
                raise self._differs(f"canonical scenario {scenario} is gone")
            if canonical[scenario] != digest:
                raise self._differs(f"canonical scenario {scenario} has other results")
        if self._unexecuted() != generation.unexecuted:
            raise self._differs("lines have changed that no canonical scenario executes")
        chosen = list(self._chosen(generation))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(partial(self._is_same, generation), chosen)
            for run, is_same in zip(chosen, results, strict=True):
                if not is_same:
                    raise self._differs(
                        f"scenario {run.scenario_id} ({run.study}, {run.experiment}, {run.point}) "
                        "has other results"
                    )
        reason = f"Equal in {len(canonical)} canonical scenarios and {len(chosen)} stored runs."
        sources = Sources(digest=self._digest(), added=today(), reason=reason)
        update = {"canonical": canonical, "sources": [*generation.sources, sources]}
        return generation.model_copy(update=update)

    def new_generation(self, written: str) -> Generation:
        """Return a generation of the present sources alone; `written` is the program's version."""
        sources = Sources(digest=self._digest(), added=today(), reason="A new generation.")
        return Generation(
            version=self.engine.exact_version(written, self.engine.build_key(self.root)),
            canonical=self._canonical(),
            unexecuted=self._unexecuted(),
            sources=[sources],
        )

    def _canonical(self) -> dict[str, str]:
        program = self.root / self.engine.program(self.root, self.data)
        return digests_of_runs(self.engine, program, canonical_scenarios(self.root, self.engine))

    def _unexecuted(self) -> str:
        scenarios = canonical_scenarios(self.root, self.engine)
        lines = unexecuted_lines(self.root, self.engine, scenarios)
        return digest_of("\n".join(lines).encode())[:16]

    def _digest(self) -> str:
        return self.engine.build_key(self.root).partition("-")[0]

    def _differs(self, what: str) -> InputError:
        name = self.engine.name
        return InputError(
            f"{name}: {what}, so these sources are a generation of their own and all runs are made "
            f"anew; `replicate engines --new --engines {name}` lists them"
        )

    def _files(self, scenario: Scenario) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory(prefix="same-") as folder:
            work = Path(folder) / "run"
            run_single(self.root, self.data, scenario, self.engine.name, work)
            return {name: (work / name).read_bytes() for name in _COMPARED}

    def _is_same(self, generation: Generation, run: Run) -> bool:
        files = self._files(run.scenario)
        stored = self._store(generation).tables(run.scenario_id)
        if stored is not None:
            return all(files[name] == stored[name] for name in _COMPARED)
        released = self._released(generation, run.study)
        is_run = pc.equal(released["scenario"], run.scenario_id)
        rows = released.filter(is_run).select(_RELEASED).sort_by("flow")
        measured = read_table("flows.csv", files["flows.csv"]).select(_RELEASED).sort_by("flow")
        return bool(measured.to_pydict() == rows.to_pydict())

    def _store(self, generation: Generation) -> Store:
        name = f"{self.engine.name}-{generation.name}-{self.engine.version}"
        return Store(self.data / "store" / name)

    def _released(self, generation: Generation, study: str) -> pa.Table:
        path = self.root / "data/release/results" / study / "flows.parquet"
        columns = ["scenario", "engine", "engine_version", *_RELEASED]
        if not path.is_file():
            return pa.table({name: [] for name in columns})
        flows = read_parquet(path, columns=columns)
        is_own = pc.and_(
            pc.equal(flows["engine"], self.engine.name),
            pc.equal(flows["engine_version"], generation.version),
        )
        return flows.filter(is_own)

    def _chosen(self, generation: Generation) -> Iterator[Run]:
        """Yield a stored run of each kind, the cheapest; without one, a released run."""
        finished = self._store(generation).finished()
        for study in study_ids(self.root):
            released = set(self._released(generation, study)["scenario"].to_pylist())
            for kind, runs in self._kinds(study).items():
                for known in (finished, released):
                    candidates = [run for run in runs if run.scenario_id in known]
                    if candidates:
                        yield min(candidates, key=lambda run: (run.cost_s, run.scenario_id))
                        break
                else:
                    raise InputError(
                        f"{self.engine.name}: no run of study {study} with {kind} is stored or "
                        f"released that generation {generation.name} made; run `make report` with "
                        "its sources first"
                    )

    def _kinds(self, name: str) -> dict[str, list[Run]]:
        """Return the runs of a study by experiment, variants, queues and kinds of loss."""
        study = load_study(self.root, name)
        kinds: dict[str, list[Run]] = {}
        for tier in _TIERS:
            for run in design_study(study, load_tier(self.root, tier), [self.engine.name]):
                if not run.refusal:
                    kinds.setdefault(_kind(run), []).append(run)
        return kinds


def _kind(run: Run) -> str:
    parts = [run.experiment]
    for flow in run.scenario.flows:
        if isinstance(flow, TcpFlow):
            parts.append(flow.congestion_control)
    for link in run.scenario.links:
        parts += [link.queue_ab.kind, link.queue_ba.kind]
        parts += [f"{loss.kind} loss" for loss in (link.loss_ab, link.loss_ba) if loss]
    return ", ".join(sorted(set(parts)))
