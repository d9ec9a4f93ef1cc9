"""Ours beside what a user would do instead, on the same scenarios; and what our measuring costs."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.engines.catalogue import NS3
from replication.engines.lowering import PLAN_FILE
from replication.report.parts.bench_model import Alternative, Figure
from replication.study.errors import InputError
from replication.study.scenario import Scenario

from bench.engine import Size, compile_program, programs, wheel
from bench.overhead import START_S, loop, simulate_batch
from bench.scenario import dumbbell
from bench.timed import Announce, least, timed

SOURCES = Path("workflow") / "bench"
#: Where `make setup-bench` installs ns-3's Python bindings.
BINDINGS = Path(".cache") / "bench"
INSTRUMENTATION_AT_MOST = 1.10
#: Ours must be at least as fast as every other way.
WAY_AT_MOST = 1.0
OURS = "replicate step simulate"


@dataclass(frozen=True)
class Variants:
    """Our ns-3 program and the two that share all but its measuring."""

    ours: Path
    bare: Path
    flow_monitor: Path


def build_variants(root: Path, folder: Path, say: Announce) -> Variants:
    """Compile our program and its variants against ns-3's wheel, which every other way has too.

    Raises
    ------
    InputError
        The engine that the bench measures is not built here.
    """
    if "ns3" not in programs(root):
        raise InputError("bench: replicate-ns3 is not built: run `make engines ENGINES=ns3` first")
    say("compiling our program with and without its measuring")
    prefix, built = wheel(root, folder / "unpacked"), folder / "program"
    compile_program(root, prefix, built)
    settings = {"NS3_PREFIX": prefix, "BUILD": built, "OUT": folder}
    words = [f"{name}={path.resolve()}" for name, path in settings.items()]
    timed(["make", "--silent", "-C", str(root / SOURCES), *words], root)
    return Variants(built / "replicate-ns3", folder / "bare", folder / "flow-monitor")


def instrumentation(variants: Variants, size: Size, folder: Path, say: Announce) -> Figure:
    """Return the CPU time of our program over that of the bare one, on the same events.

    Raises
    ------
    InputError
        The two did not simulate the same: they differ by more than our samples.
    """
    say("all metrics on against bare sinks")
    ours = dumbbell("ns3", size.flows, size.duration_s)
    bare = dumbbell("ns3", size.flows, size.duration_s, sampling_interval_s=size.duration_s)
    pair = [(variants.ours, ours), (variants.bare, bare)]
    full, empty = least(pair, folder / "bare", 2 * size.repeats)
    samples = math.ceil(round(ours.duration_s / ours.sampling_interval_s, 6)) - 1
    if (full.events or 0) - samples != empty.events:
        raise InputError(
            f"bench: {full.events} events with {samples} samples against {empty.events} without: "
            "the bare program does not simulate the same; see workflow/bench/bare.cpp"
        )
    return Figure(
        id="instrumentation",
        title="Cost of our measuring on ns-3",
        value=round(full.usage.cpu_s / empty.usage.cpu_s, 4),
        unit="1",
        how=f"CPU time with all metrics over CPU time with no hook of ours, {empty.events} events",
        at_most=INSTRUMENTATION_AT_MOST,
    )


def ways(
    root: Path, variants: Variants, size: Size, folder: Path, with_bindings: bool, say: Announce
) -> list[Alternative]:
    """Run the same dumbbells in every way, by turns; of each, the turn with the least CPU time."""
    scenarios = [
        dumbbell("ns3", size.flows, size.duration_s, rate_bps=r) for r in size.way_rates_bps
    ]
    say(f"what a user would do instead, on {len(scenarios)} scenarios")
    loops = {
        "shell loop over replicate-ns3": ("ours", variants.ours, folder / "loop"),
        "shell loop over a C++ program": (
            "flow monitor",
            variants.flow_monitor,
            folder / "monitor",
        ),
    }
    inputs = ["--plan", PLAN_FILE, "--output", "."]
    turns = [
        (
            simulate_batch(root, NS3, variants.ours, scenarios, folder / "batch")[0],
            *(
                _timed_way(name, metrics, [str(program), *inputs], scenarios, place)
                for name, (metrics, program, place) in loops.items()
            ),
        )
        for _ in range(size.turns)
    ]
    batches, *others = zip(*turns, strict=True)
    batch = min(batches, key=lambda used: used.cpu_s)
    packets = _received(folder / "loop", len(scenarios))
    _check_monitor(folder / "monitor", folder / "loop", scenarios)
    first = {"name": OURS, "metrics": "ours", "scenarios": len(scenarios), "packets": packets}
    return [
        Alternative.model_validate(first | {"cpu_s": batch.cpu_s, "wall_s": batch.wall_s}),
        *(
            min(way, key=lambda turn: turn.cpu_s or 0.0).model_copy(update={"packets": packets})
            for way in others
        ),
        *_binding_ways(root, scenarios, folder / "bindings", with_bindings, say),
    ]


def _binding_ways(
    root: Path, scenarios: list[Scenario], folder: Path, wanted: bool, say: Announce
) -> list[Alternative]:
    name = "shell loop over Python bindings"
    python = (root / BINDINGS / "bin" / "python").absolute()
    found = []
    for metrics, options in (("packet sinks", []), ("flow monitor", ["--flow-monitor"])):
        base = {"name": name, "metrics": metrics, "scenarios": len(scenarios)}
        if not wanted or not python.is_file():
            reason = "not installed: `make setup-bench`" if wanted else "left out of a quick bench"
            found.append(Alternative.model_validate(base | {"reason": reason}))
            continue
        say(f"Python bindings with {metrics}")
        script = str((root / SOURCES / "bindings.py").resolve())
        command = [str(python), script, "scenario.json", *options, ">", "out.json"]
        way = _timed_way(name, metrics, command, scenarios, folder)
        outs = [
            json.loads((folder / str(i) / "out.json").read_text()) for i in range(len(scenarios))
        ]
        found.append(way.model_copy(update={"packets": sum(out["packets"] for out in outs)}))
    return found


def _timed_way(
    name: str, metrics: str, command: list[str], scenarios: list[Scenario], folder: Path
) -> Alternative:
    start = loop(NS3, command, [dumbbell("ns3", len(scenarios[0].flows), START_S)], folder)
    used = loop(NS3, command, scenarios, folder)
    return Alternative(
        name=name,
        metrics=metrics,
        scenarios=len(scenarios),
        cpu_s=used.cpu_s,
        wall_s=used.wall_s,
        start_s=start.cpu_s,
    )


def _received(folder: Path, scenarios: int) -> int:
    documents = [json.loads((folder / str(i) / "run.json").read_text()) for i in range(scenarios)]
    return sum(document["data_packets_received"] for document in documents)


def _check_monitor(monitor: Path, ours: Path, scenarios: list[Scenario]) -> None:
    """Raise InputError unless the flow monitor saw each flow's data packets as we did.

    It counts a SYN and the acknowledgement that ends the handshake too.
    """
    for number, scenario in enumerate(scenarios):
        with (monitor / str(number) / "flow_monitor.csv").open(encoding="utf-8") as file:
            theirs = sorted(int(row["packets"]) for row in csv.DictReader(file))
        rows: list[dict[str, Any]] = read_flows(ours / str(number) / "flows.csv")
        own = sorted(int(row["packets_received"]) + 2 for row in rows)
        if theirs != own:
            raise InputError(
                f"bench: scenario {scenario.id}: the flow monitor counted {theirs} packets, we "
                f"with the handshake {own}; see workflow/bench/bare.cpp"
            )


def read_flows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an engine's flows.csv."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def way_ratios(rows: list[Alternative]) -> list[Figure]:
    """Return our CPU time per packet over that of every other way that was measured."""
    ours = next(row for row in rows if row.name == OURS)
    return [
        Figure(
            id=f"way-{i}",
            title=f"Ours beside a {row.name}: {row.metrics}",
            value=round(own / other, 4),
            unit="1",
            how="CPU time per packet, ours over theirs, one core",
            at_most=WAY_AT_MOST,
        )
        for i, row in enumerate(rows)
        if row is not ours
        and (own := ours.cpu_per_packet_s) is not None
        and (other := row.cpu_per_packet_s) is not None
    ]
