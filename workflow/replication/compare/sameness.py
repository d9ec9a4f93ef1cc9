"""Whether new sources of an engine give the results of its generation (`replicate engines --same`).

Compared are the tables of every canonical scenario, and those of one run of each kind: experiment,
variants, queues and kinds of loss. Lines that no canonical scenario executes must be unchanged,
since equal tables say nothing about them.
"""

from dataclasses import dataclass
from pathlib import Path

from replication.base.errors import InputError
from replication.base.files import digest_of
from replication.design.config import load_study, load_tier, study_ids
from replication.design.design import Run, design_study
from replication.engines.canonical import (
    canonical_scenarios,
    digest_of_tables,
    digests_of_runs,
)
from replication.engines.executed_lines import unexecuted_lines
from replication.engines.generation import Generation, Sources, today
from replication.engines.model import Engine
from replication.simulate.process import written_version
from replication.simulate.store import Store
from replication.study.scenario import Scenario, TcpFlow
from replication.study.setup import Setup

#: Tiers whose runs may be stored.
_TIERS = ("quick", "paper")


@dataclass(frozen=True)
class Sameness:
    """Compares an engine's present program with its generation; `data` has finished runs."""

    root: Path
    data: Path
    engine: Engine

    def extended(self, generation: Generation) -> Generation:
        """Return the generation with the present sources.

        Raises
        ------
        InputError
            A result differs, a line that no canonical scenario executes has changed, or a kind of
            run has no result to compare with. The message names it.
        """
        canonical = self._canonical()
        for scenario, digest in generation.canonical.items():
            if scenario not in canonical:
                raise self._differs(f"canonical scenario {scenario} is gone")
            if canonical[scenario] != digest:
                raise self._differs(f"canonical scenario {scenario} has other results")
        if self._unexecuted() != generation.unexecuted:
            raise self._differs("lines have changed that no canonical scenario executes")
        known = self._known_runs(generation)
        runs = digests_of_runs(self.engine, self._program, [run.scenario for run, _ in known])
        for run, digest in known:
            if runs[run.scenario_id] != digest:
                raise self._differs(
                    f"scenario {run.scenario_id} ({run.study}, {run.experiment}, {run.point}) has "
                    "other results"
                )
        reason = f"Equal in {len(canonical)} canonical scenarios and {len(runs)} runs of studies."
        sources = self._present(reason)
        update = {
            "canonical": canonical,
            "runs": runs,
            "sources": [*generation.sources, sources],
        }
        return generation.model_copy(update=update)

    def new_generation(self) -> Generation:
        """Return a generation of the present sources alone."""
        cheapest = [_cheapest(runs) for runs in self._kinds().values()]
        sources = self._present("A new generation.")
        version = self.engine.exact_version("", self.engine.build_key(self.root))
        return Generation(
            version=sources.built or version,
            canonical=self._canonical(),
            runs=digests_of_runs(self.engine, self._program, [run.scenario for run in cheapest]),
            unexecuted=self._unexecuted(),
            sources=[sources],
        )

    def _present(self, reason: str) -> Sources:
        key = self.engine.build_key(self.root)
        written = written_version(self._program)
        return Sources(
            digest=key.partition("-")[0],
            built=self.engine.exact_version(written, key) if written else "",
            added=today(),
            reason=reason,
        )

    def _differs(self, what: str) -> InputError:
        name = self.engine.name
        return InputError(
            f"{name}: {what}, so these sources are a generation of their own and all runs are made "
            f"anew; `replicate engines --new --engines {name}` lists them"
        )

    def _canonical(self) -> dict[str, str]:
        return digests_of_runs(self.engine, self._program, self._scenarios)

    def _unexecuted(self) -> str:
        lines = unexecuted_lines(self.root, self.engine, self._scenarios)
        return digest_of("\n".join(lines).encode())[:16]

    @property
    def _program(self) -> Path:
        return self.root / self.engine.program(self.root, self.data)

    @property
    def _scenarios(self) -> list[Scenario]:
        return canonical_scenarios(self.root, self.engine)

    def _known_runs(self, generation: Generation) -> list[tuple[Run, str]]:
        """Return a run of each kind, with the digest that is listed, or of the stored tables."""
        folder = f"{self.engine.name}-{generation.name}-{self.engine.version}"
        store = Store(self.data / "store" / folder, self.engine.name)
        finished = store.finished()
        known = []
        for kind, runs in self._kinds().items():
            listed = [run for run in runs if run.scenario_id in generation.runs]
            if listed:
                run = _cheapest(listed)
                known.append((run, generation.runs[run.scenario_id]))
                continue
            stored = [run for run in runs if run.scenario_id in finished]
            run = _cheapest(stored or runs)
            tables = store.tables(run.scenario_id)
            if tables is None:
                raise InputError(
                    f"{self.engine.name}: generation {generation.name} has no run of {kind}: run "
                    "`make report TIER=quick` with its sources first"
                )
            known.append((run, digest_of_tables(tables)))
        return known

    def _kinds(self) -> dict[str, list[Run]]:
        """Return the runs of all studies by kind."""
        kinds: dict[str, list[Run]] = {}
        for name in study_ids(self.root):
            study = load_study(self.root, name)
            # Beside its primary engine, a study may run on no other.
            engines = sorted({self.engine.name, study.original_system.engine})
            for tier in _TIERS:
                for run in design_study(study, load_tier(self.root, tier), engines):
                    if run.engine != self.engine.name or run.refusal:
                        continue
                    if run.setup is Setup.DEFAULTS:
                        kinds.setdefault(_kind(run), []).append(run)
        return kinds


def _kind(run: Run) -> str:
    parts: list[str] = []
    for flow in run.scenario.flows:
        if isinstance(flow, TcpFlow):
            parts.append(f"{flow.congestion_control}{' with SACK' if flow.sack else ''}")
    for link in run.scenario.links:
        parts += [link.queue_ab.kind, link.queue_ba.kind]
        parts += [f"{loss.kind} loss" for loss in (link.loss_ab, link.loss_ba) if loss]
    return ", ".join([run.study, run.experiment, *sorted(set(parts))])


def _cheapest(runs: list[Run]) -> Run:
    return min(runs, key=lambda run: (run.cost_s, run.scenario_id))
