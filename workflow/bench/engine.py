"""What the engines take: CPU per packet, events per second, memory and its growth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from replication.engines.catalogue import ENGINES, chosen_engine
from replication.engines.ns3_version import NS3_VERSION, NS3_VERSIONS
from replication.engines.wheel import fetch_wheel
from replication.plan.pipeline import Paths
from replication.report.parts.bench_model import EngineCost, Figure, Memory

from bench.scenario import dumbbell
from bench.timed import Announce, Timed, TimedRun, least, run, timed

WHEEL_LOCK = Path("workflow/engines/ns3/wheels") / f"{NS3_VERSION}.lock"
#: Four times the duration may take this much more memory: the series are written as they come.
GROWTH_AT_MOST = 1.05


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes
    ----------
    flows, duration_s, repeats
        The timed dumbbell, and how often it is run.
    turns
        How often whole batches and loops are run, by turns.
    durations_s, flow_counts
        What memory is measured at.
    short_runs
        Scenarios of the batch whose overhead is measured.
    way_rates_bps
        Bottleneck rates of the dumbbells that are run in every way.
    sweeps
        Runs of the sweeps on an engine that returns at once.
    """

    flows: int
    duration_s: float
    repeats: int
    turns: int
    durations_s: tuple[float, ...]
    flow_counts: tuple[int, ...]
    short_runs: int
    way_rates_bps: tuple[float, ...]
    sweeps: tuple[int, ...]


_RATES_BPS = (10e6, 20e6, 30e6, 40e6)
_SWEEPS = (100, 1000, 10_000)
FULL = Size(4, 30.0, 5, 3, (10.0, 20.0, 40.0), (1, 4, 16, 64), 200, _RATES_BPS, _SWEEPS)
QUICK = Size(2, 3.0, 2, 1, (1.0, 4.0), (1, 4), 20, (4e6,), (20,))


def programs(root: Path) -> dict[str, Path]:
    """Return the engines whose programs are built, with their paths."""
    data = root / Paths().data
    found = {
        name: Paths(data=data).engine(name, engine.fingerprint(root)) / f"replicate-{name}"
        for name, engine in ENGINES.items()
        if engine.is_available(root)
    }
    return {name: program for name, program in found.items() if program.is_file()}


def wheel(root: Path, folder: Path) -> Path:
    """Return ns-3's unpacked wheel: the one that is here, or one that is fetched to `folder`."""
    here = root / Paths().ns3_wheel(NS3_VERSION)
    if here.is_dir():
        return here
    fetch_wheel(root / WHEEL_LOCK, folder / "ns3")
    return folder / "ns3"


def compile_program(root: Path, prefix: Path, folder: Path, compiler: str = "g++") -> Timed:
    """Compile our program against the ns-3 of `prefix` as `folder`/replicate-ns3."""
    words = [f"NS3_PREFIX={prefix.resolve()}", f"BUILD={folder.resolve()}", f"CXX={compiler}"]
    source = str(ENGINES["ns3"].source_folder(root))
    return timed(["make", "--silent", "--jobs=2", "--directory", source, *words], root)


def other_builds(root: Path) -> dict[str, Path]:
    """Return the other versions of ns-3 that our program was built for, with their paths."""
    paths = Paths(data=root / Paths().data)
    found = {
        version: paths.engine("ns3", chosen_engine("ns3", version).fingerprint(root))
        / "replicate-ns3"
        for version in NS3_VERSIONS
    }
    return {version: program for version, program in found.items() if program.is_file()}


def engine_costs(root: Path, size: Size, folder: Path, say: Announce) -> list[EngineCost]:
    """Time the dumbbell on every engine that is built, by turns."""
    built = programs(root)
    say(f"the same network on {', '.join(built)}")
    scenarios = {name: dumbbell(name, size.flows, size.duration_s) for name in built}
    runs = least([(built[n], scenarios[n]) for n in built], folder, size.repeats)
    return [_cost(name, ran) for name, ran in zip(built, runs, strict=True)]


def build_costs(root: Path, size: Size, folder: Path, say: Announce) -> list[EngineCost]:
    """Time the dumbbell on every version of ns-3 that our program was built for, by turns."""
    built = other_builds(root)
    if set(built) <= {NS3_VERSION}:
        return []
    say(f"the same network on ns-3 {', '.join(built)}")
    scenario = dumbbell("ns3", size.flows, size.duration_s)
    runs = least([(program, scenario) for program in built.values()], folder, size.repeats)
    return [_cost("ns3", ran, version) for version, ran in zip(built, runs, strict=True)]


def _cost(engine: str, ran: TimedRun, version: str = "") -> EngineCost:
    return EngineCost(
        engine=engine,
        version=version or str(ran.counts["version"]),
        scenario=str(ran.counts["scenario"]),
        packets=ran.packets,
        events=ran.events,
        cpu_s=ran.usage.cpu_s,
    )


def memory(root: Path, size: Size, folder: Path, say: Announce) -> list[Memory]:
    """Return each engine's peak memory while the duration grows, and while the flows do."""
    rows = []
    for engine, program in programs(root).items():
        say(f"memory of {engine}")
        cases = [("duration_s", value, size.flows, value) for value in size.durations_s]
        shortest = size.durations_s[0]
        cases += [("flows", float(n), n, shortest) for n in size.flow_counts]
        for varied, value, flows, duration_s in cases:
            ran = run(program, dumbbell(engine, flows, duration_s), folder / engine)
            series = (folder / engine / "series.csv").stat().st_size
            rows.append(
                Memory(
                    engine=engine,
                    varied=varied,
                    value=value,
                    peak_memory_bytes=ran.usage.peak_memory_bytes,
                    series_bytes=series,
                )
            )
    return rows


def growth(rows: list[Memory]) -> list[Figure]:
    """Return for each engine how its memory grows with the duration, and with each flow."""
    figures = []
    for engine in dict.fromkeys(row.engine for row in rows):
        first, last = _ends(rows, engine, "duration_s")
        times = last.value / first.value
        figures.append(
            Figure(
                id=f"memory-duration-{engine}",
                title=f"Memory of {engine}, {times:.0f} times the duration",
                value=round(last.peak_memory_bytes / first.peak_memory_bytes, 4),
                unit="1",
                how=f"peak at {last.value:g} s over peak at {first.value:g} s",
                at_most=GROWTH_AT_MOST,
            )
        )
        first, last = _ends(rows, engine, "flows")
        more = last.peak_memory_bytes - first.peak_memory_bytes
        figures.append(
            Figure(
                id=f"memory-flows-{engine}",
                title=f"Memory of {engine} for each further flow",
                value=round(more / (last.value - first.value) / 1e3, 1),
                unit="kB",
                how=f"from {first.value:g} to {last.value:g} flows",
            )
        )
    return figures


def _ends(rows: list[Memory], engine: str, varied: str) -> tuple[Memory, Memory]:
    own = [row for row in rows if row.engine == engine and row.varied == varied]
    return own[0], own[-1]
