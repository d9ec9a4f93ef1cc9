"""Scale: what a large sweep costs beyond its simulations, measured on the real workflow.

A study of short runs is written into a folder of its own, with the tier that runs it; Snakemake
designs, simulates, collects and judges it there, with this project's rules. In the place of ns-3
stands an engine that returns at once.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil
from pydantic import TypeAdapter, ValidationError
from replication.engines.catalogue import ENGINES
from replication.plan.pipeline import Paths, Pipeline
from replication.report.parts.bench_model import Figure, Sweep
from replication.report.provenance import simulate_totals
from replication.study.errors import InputError, RunError, describe
from replication.study.files import write_text
from replication.study.level import MOST_POINTS
from replication.study.published import published_path
from replication.study.storage.table import PUBLISHED_COLUMNS

from bench.timed import timed

STUDY = "scale"
#: What `make scale` measured, below the data.
SWEEPS = "scale.json"
#: What the studies' tiers call for, so that replicates and points both grow the design.
LEAST_REPLICATES = 5
VARIANTS = ("newreno", "cubic")
TARGET = "data/reproduced/cells.csv"
SETTINGS = {"tier": STUDY, "studies": STUDY, "engines": "ns3"}
#: Sweeps by which growth is judged, each beside one of a tenth of its scenarios.
LARGE, LARGEST = 10_000, 100_000
#: What a sweep takes, by its field: the words for it and its unit.
_GROWING = {
    "plan_s": ("Planning", "s"),
    "total_s": ("The whole", "s"),
    "no_op_s": ("A rerun with nothing to do", "s"),
    "snakemake_bytes": ("Memory of Snakemake", "MB"),
    "largest_worker_bytes": ("Memory of the largest job", "MB"),
    "files": ("Files", ""),
    "disk_bytes": ("Bytes on disk", "MB"),
}
#: Goals: nothing grows faster than the scenarios do.
GROWTH_AT_MOST = 1.0
NO_OP_AT_MOST_S = 10.0
STORED_AT_MOST = 0.05
_NO_SWEEP = "not every sweep it takes was made: `make scale` makes the largest"
_SWEEPS = TypeAdapter(list[Sweep])
_SAMPLE_S = 0.2
#: A study has to have something to judge.
_CLAIM = {
    **{"id": "none", "quote": "-", "place": "generated", "reading": "Nothing is claimed."},
    "test": {"kind": "not_testable", "reason": "Nothing is claimed."},
}


def sizes(text: str) -> list[int]:
    """Return the numbers of scenarios in a comma-separated text.

    Raises
    ------
    InputError
        One is not a positive multiple of variants x replicates.
    """
    numbers = [int(part) if part.strip().isdigit() else 0 for part in text.split(",")]
    for number in numbers:
        unit = len(VARIANTS) * replicates(number)
        if not number or number % unit:
            raise InputError(f"--scenarios: {text!r} must list positive multiples of {unit}")
    return numbers


def replicates(scenarios: int) -> int:
    """Return how many replicates a sweep has: more, where a study has room for too few points."""
    return max(LEAST_REPLICATES, math.ceil(scenarios / MOST_POINTS))


def study_document(scenarios: int) -> dict[str, Any]:
    """Return a study whose design has `scenarios` runs of 2 s, one of `sizes`."""
    grid = scenarios // (len(VARIANTS) * replicates(scenarios))
    rates = next(n for n in range(math.isqrt(grid), 0, -1) if grid % n == 0)
    return {
        "id": STUDY,
        "title": f"{scenarios} short runs",
        "bibliography": {"title": "Scale", "authors": ["Nobody"]},
        "original_system": {"engine": "ns3", "description": "none"},
        "notes": {"scope": "Generated to measure the workflow.", "easy": "-", "hard": "-"},
        "parameters": {
            name: {"value": value, "published": {"place": "generated"}}
            for name, value in {"variant": VARIANTS[0], "rate_bps": 1e6, "delay_s": 0.01}.items()
        },
        "experiments": [_experiment(rates, grid // rates)],
        "claims": [_CLAIM],
    }


def _experiment(rates: int, delays: int) -> dict[str, Any]:
    queue = {"kind": "droptail", "limit_packets": 50}
    queues = {"queue_ab": queue, "queue_ba": queue}
    return {
        "id": "sweep",
        "type": "throughput_tables",
        "title": "A grid",
        "question": "What does the workflow cost?",
        "place": "generated",
        "factors": [
            _factor("variant", VARIANTS),
            _factor("rate_bps", [1e6 + 1e6 * i / rates for i in range(rates)]),
            _factor("delay_s", [0.01 + 0.04 * i / delays for i in range(delays)]),
        ],
        "topology": {
            "nodes": ["source", "router", "sink"],
            "links": [
                {"id": "access", "a": "source", "b": "router", "rate_bps": 1e7, "delay_s": 0.001}
                | queues,
                {
                    **{"id": "bottleneck", "a": "router", "b": "sink"},
                    **{"rate_bps": "$rate_bps", "delay_s": "$delay_s"},
                    **queues,
                },
            ],
            "monitors": [{"link": "bottleneck", "direction": "ab"}],
        },
        "flows": [
            {
                **{"id": "flow", "kind": "tcp", "source": "source", "destination": "sink"},
                **{"start_s": 0.0, "start_jitter_s": 0.1, "congestion_control": "$variant"},
                **{"segment_bytes": 1000, "initial_window_segments": 2},
                **{"delayed_ack_segments": 1, "minimum_rto_s": 0.2, "initial_rto_s": 1.0},
            }
        ],
        "duration_s": 2.0,
        "sampling_interval_s": 0.5,
    }


def _factor(name: str, values: Iterable[Any]) -> dict[str, Any]:
    levels = [
        {"key": f"k{i}", "label": str(value), "set": {name: value}}
        for i, value in enumerate(values)
    ]
    return {"id": name, "label": name, "published": {"place": "generated"}, "levels": levels}


def make_project(root: Path, folder: Path, scenarios: int) -> None:
    """Lay out a project in `folder` that runs the generated study with the code of `root`."""
    lay_out(root, folder, ())
    tier = {
        "id": STUDY,
        "title": "every level, short runs",
        "replicates": [{"count": replicates(scenarios)}],
        "levels": "all",
        "batch_cost_s": 20.0,
    }
    # JSON is YAML, and quicker to read.
    write_text(folder / "configs" / "tiers" / f"{STUDY}.yaml", json.dumps(tier))
    study = json.dumps(study_document(scenarios))
    write_text(folder / "configs" / "studies" / f"{STUDY}.yaml", study)
    numbers = ",".join(PUBLISHED_COLUMNS) + "\n"
    write_text(published_path(folder, STUDY), numbers)


def lay_out(root: Path, folder: Path, engines: Iterable[str]) -> None:
    """Lay out a project without studies in `folder`, with the code of `root`.

    The programs of `engines` that `root` has built are taken along.
    """
    write_text(folder / "Snakefile", (root / "Snakefile").read_text(encoding="utf-8"))
    for name in ("workflow", "notebooks", "containers", "LICENSE", "requirements.lock"):
        (folder / name).symlink_to((root / name).resolve())
    for path in (root / "configs").glob("*.yaml"):
        write_text(folder / "configs" / path.name, path.read_text(encoding="utf-8"))
    built = Paths().data / "engines"
    for engine in engines:
        for program in (root / built).glob(f"{engine}-*{ENGINES[engine].version}"):
            shutil.copytree(program, folder / built / program.name, symlinks=True)


def install_instant_engine(root: Path, program: Path) -> None:
    """Build the engine that returns at once, in the place of a project's program of ns-3."""
    program.parent.mkdir(parents=True)
    source = root / "workflow" / "bench" / "instant.cpp"
    timed(["g++", "-std=c++20", "-O2", "-static", "-o", str(program), str(source)], root)


def measure(root: Path, scenarios: int, cores: int) -> Sweep:
    """Run a generated sweep of `scenarios` on `cores` and measure it.

    Raises
    ------
    RunError
        Snakemake failed; the message holds its last lines.
    """
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        make_project(root, folder, scenarios)
        started = time.monotonic()
        pipeline = Pipeline.load(folder, SETTINGS)
        plan_s = time.monotonic() - started
        install_instant_engine(root, folder / pipeline.program("ns3"))
        data = folder / Paths().data
        # The files are warm before anything is timed.
        run_snakemake(folder, cores, SETTINGS, "engines")
        dag_s, planned, _ = run_snakemake(folder, cores, SETTINGS, TARGET, options=["--dry-run"])
        total_s, _, peaks = run_snakemake(folder, cores, SETTINGS, TARGET)
        no_op_s, _, _ = run_snakemake(folder, cores, SETTINGS, TARGET)
        totals = simulate_totals(data, pipeline.studies)
        stored = list((data / "store").rglob("*"))
        files = [path for path in data.rglob("*") if path.is_file()]
        disk_bytes = sum(512 * path.lstat().st_blocks for path in files)
    workers = {name: peak for name, peak in peaks.items() if name != "snakemake"}
    largest = max(workers, key=lambda name: workers[name])
    return Sweep(
        scenarios=scenarios,
        cores=cores,
        batches=totals["batches"],
        jobs=_jobs(planned),
        plan_s=round(plan_s, 2),
        dag_s=round(dag_s, 2),
        no_op_s=round(no_op_s, 2),
        total_s=round(total_s, 2),
        simulate_s=totals["wall_s"],
        snakemake_bytes=peaks["snakemake"],
        largest_worker=largest,
        largest_worker_bytes=workers[largest],
        store_entries=len(stored),
        files=len(files),
        disk_bytes=disk_bytes,
    )


def run_snakemake(
    folder: Path,
    cores: int,
    settings: dict[str, str],
    *targets: str,
    options: Sequence[str] = (),
) -> tuple[float, str, dict[str, int]]:
    """Run Snakemake in `folder`; return wall seconds, its output and peak bytes by command.

    Raises
    ------
    RunError
        It failed; the message holds its last lines.
    """
    words = [f"{key}={value}" for key, value in settings.items()]
    command = [
        *(sys.executable, "-m", "snakemake", "--cores", str(cores), *options),
        *("--config", *words, "--", *targets),
    ]
    tools = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "workflow"),
    }
    peaks: dict[str, int] = {"snakemake": 0}
    log = folder / "snakemake.log"
    started = time.monotonic()
    with log.open("wb") as output:
        process = psutil.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        while process.poll() is None:
            _note_peaks(process, peaks)
            time.sleep(_SAMPLE_S)
    wall_s = time.monotonic() - started
    text = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode != 0:
        last = " / ".join(line for line in text.splitlines()[-8:] if line.strip())
        raise RunError(f"snakemake failed on {folder}: {last}")
    return wall_s, text, peaks


def _note_peaks(snakemake: psutil.Process, peaks: dict[str, int]) -> None:
    """Raise `peaks` to the kernel's own peak of Snakemake and of each `replicate` under it."""
    with contextlib.suppress(psutil.Error, OSError):
        for process in (snakemake, *snakemake.children(recursive=True)):
            with contextlib.suppress(psutil.Error, OSError, StopIteration):
                name = "snakemake"
                if process.pid != snakemake.pid:
                    words = iter(process.cmdline())
                    next(word for word in words if Path(word).name == "replicate")
                    name = next(word for word in words if word != "step")
                peaks[name] = max(peaks.get(name, 0), _peak_bytes(process.pid))


def _peak_bytes(pid: int) -> int:
    """Return a process's peak resident size (VmHWM, proc(5)), or 0 once it is gone."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _jobs(dry_run: str) -> int:
    """Return the number of jobs in the text of a dry run."""
    totals = [line.split()[1] for line in dry_run.splitlines() if line.startswith("total ")]
    return int(totals[0]) if totals else 0


def growth(sweeps: list[Sweep]) -> list[Figure]:
    """Return how the workflow grows with its scenarios, from the sweeps at hand.

    None of it may grow faster than they do.
    """
    by_size = {sweep.scenarios: sweep for sweep in sweeps}
    found = [
        _tenfold(quantity, by_size.get(large // 10), by_size.get(large), large)
        for large in (LARGE, LARGEST)
        for quantity in _GROWING
    ]
    large = by_size.get(LARGE)
    found.append(
        Figure(
            id="growth-no-op",
            title=f"A rerun of {LARGE:,} scenarios with nothing to do",
            value=large.no_op_s if large else None,
            unit="s",
            how="wall time" if large else _NO_SWEEP,
            at_most=NO_OP_AT_MOST_S,
        )
    )
    if by_size:
        most = by_size[max(by_size)]
        found.append(
            Figure(
                id="growth-store",
                title="Files and folders of the store, a scenario",
                value=round(most.store_entries / most.scenarios, 4),
                unit="1",
                how=f"{most.store_entries} for {most.scenarios} scenarios",
                at_most=STORED_AT_MOST,
            )
        )
    return found


def _tenfold(quantity: str, small: Sweep | None, large: Sweep | None, scenarios: int) -> Figure:
    """Return what a scenario takes in a sweep beside one of a tenth of it."""
    words, unit = _GROWING[quantity]
    value, how = None, _NO_SWEEP
    if small and large:
        per = [getattr(sweep, quantity) / sweep.scenarios for sweep in (large, small)]
        value = round(per[0] / per[1], 3) if per[1] else None
        how = f"{_amount(large, quantity, unit)} over ten times {_amount(small, quantity, unit)}"
    return Figure(
        id=f"growth-{quantity.rpartition('_')[0] or quantity}-{scenarios}".replace("_", "-"),
        title=f"{words}: {scenarios:,} scenarios beside ten times {scenarios // 10:,}",
        value=value,
        unit="1",
        how=how,
        at_most=GROWTH_AT_MOST,
    )


def _amount(sweep: Sweep, quantity: str, unit: str) -> str:
    value = getattr(sweep, quantity)
    return f"{value / 1e6:.0f} MB" if unit == "MB" else f"{value:g} {unit}".rstrip()


def read_sweeps(path: Path) -> list[Sweep]:
    """Return the sweeps in a file that `write` wrote; none if there is no such file.

    Raises
    ------
    InputError
        The file is not one of this version.
    """
    if not path.is_file():
        return []
    try:
        return _SWEEPS.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}; run `make scale` again") from None


def write(sweeps: list[Sweep], path: Path) -> None:
    """Write what was measured as JSON to `path`."""
    write_text(path, _SWEEPS.dump_json(sweeps, indent=2).decode() + "\n")
