"""The lines of an engine's sources that scenarios do not execute.

C and C++ are compiled with counters (gcov), Python is traced. Files that cannot be measured (build
scripts, Tcl, the kernel's patches and settings) count as not executed.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType

from replication.base.errors import RunError
from replication.engines.catalogue import linux_cache
from replication.engines.input_file import INPUT_FILE, input_text, write_inputs
from replication.engines.model import INPUT_FILE_SOURCES, Engine
from replication.engines.ns3 import Prefix, compile_program, installed
from replication.engines.source_lines import C_SUFFIXES, source_lines
from replication.engines.trace_program import trace_into
from replication.study.scenario import Scenario

#: Whether a line of code is executed completely, by its number from 1.
Counts = dict[int, bool]
#: The same of each measured file, by its name.
FileCounts = dict[str, Counts]

_HEADERS = (".h", ".hpp")
_BRACKETS = re.compile(r"[\W_]*")


def unexecuted_lines(root: Path, engine: Engine, scenarios: Sequence[Scenario]) -> list[str]:
    """Return the lines of an engine's sources that no scenario executes, sorted.

    A line that is executed in part counts as not executed. So does a line without code that states
    a constant, which may be used anywhere, or that follows or precedes a line that is not
    executed: it may be part of the same statement.

    Raises
    ------
    RunError
        The program cannot be compiled with counters, or fails in a scenario.
    """
    by_file = unexecuted_by_file(root, engine, scenarios)
    return sorted(itertools.chain.from_iterable(by_file.values()))


def unexecuted_by_file(
    root: Path, engine: Engine, scenarios: Sequence[Scenario]
) -> dict[Path, list[str]]:
    """Return the lines of `unexecuted_lines` by source file, in their order."""
    root = root.absolute()
    with tempfile.TemporaryDirectory(prefix="executed-") as folder:
        counts = _MEASURES[engine.name](root, engine, scenarios, Path(folder))
        counts |= _measure_writer(engine, scenarios, Path(folder) / "written")
    return {path: list(_unexecuted(path, counts)) for path in engine.sources(root)}


def _unexecuted(path: Path, file_counts: FileCounts) -> Iterator[str]:
    lines, constants = source_lines(path)
    counts = file_counts.get(path.name, {})
    # A header without code is not counted.
    compiled = any(name.endswith((".c", ".cpp")) for name in file_counts)
    if not counts and not (compiled and path.suffix in _HEADERS):
        yield from filter(None, lines)
        return
    numbers = range(1, len(lines) + 1)
    until, onwards = _spread(counts, numbers), _spread(counts, reversed(numbers))
    for number, line in zip(numbers, lines, strict=True):
        # The compiler counts a line of C with a constant in it, but not a constant.
        is_constant = number in constants and not (path.suffix in C_SUFFIXES and number in counts)
        is_executed = until[number] and onwards[number] and not is_constant
        if not is_executed and not _BRACKETS.fullmatch(line):
            yield line


def _spread(counts: Counts, numbers: Iterable[int]) -> Counts:
    """Return for every line whether the last line of code so far is executed."""
    executed = True
    spread = {}
    for number in numbers:
        executed = counts.get(number, executed)
        spread[number] = executed
    return spread


def _measure_ns3(
    root: Path, engine: Engine, scenarios: Sequence[Scenario], work: Path
) -> FileCounts:
    wheel = root / "data/reproduced/engines" / f"ns3-wheel-{engine.version}" / "ns3"
    prefix = installed(engine.version) or Prefix.find(wheel)
    # The last of contradicting options counts.
    compiler = work / "compiler"
    compiler.write_text('#!/bin/sh\nexec g++ "$@" --coverage -O0\n', encoding="utf-8")
    compiler.chmod(0o755)
    build = work / "build"
    compile_program(root, prefix, build, f"CXX={compiler}")
    _run_all([str(build / "replicate-ns3")], engine, scenarios, work)
    return _count_c(build)


def _measure_ns2(
    root: Path, engine: Engine, scenarios: Sequence[Scenario], work: Path
) -> FileCounts:
    program = work / "program"
    program.mkdir()
    shutil.copy(root / "workflow/engines/ns2/driver.tcl", program)
    modules = [path for path in engine.program_sources(root) if path.suffix == ".py"]
    return _measure_python(program, modules, engine, scenarios, work)


def _measure_linux(
    root: Path, engine: Engine, scenarios: Sequence[Scenario], work: Path
) -> FileCounts:
    folder = root / "workflow/engines/linux"
    build, counters = work / "build", work / "counters"
    command = [str(folder / "build"), "--output", str(build), "--cache", str(linux_cache(root))]
    _call(command, "the linux engine cannot be built")
    counters.mkdir()
    guest, initrd = str(counters / "init"), str(build / "initrd")
    command = ["gcc", "-O0", "--coverage", "-static", "-Wl,--wrap=reboot", "-o", guest]
    command += [f'-DCOUNTERS="{counters}"', str(Path(__file__).with_name("write_counters.c"))]
    command += [*map(str, sorted((folder / "guest").glob("*.c"))), "-lm"]
    _call(command, "the guest cannot be compiled with counters", counters)
    command = [sys.executable, "-B", str(folder / "assemble.py"), "initrd", guest, initrd]
    _call(command, "the guest's archive cannot be made")
    program = build / "program"
    shutil.rmtree(program)
    program.mkdir()
    modules = [path for path in engine.program_sources(root) if path.suffix == ".py"]
    modules.remove(folder / "assemble.py")
    counts = _measure_python(program, modules, engine, scenarios, work)
    return counts | _count_c(counters)


def _measure_python(
    program: Path,
    modules: list[Path],
    engine: Engine,
    scenarios: Sequence[Scenario],
    work: Path,
) -> FileCounts:
    """Trace the program of `modules` in a folder."""
    for path in modules:
        shutil.copy(path, program)
    log = work / "executed"
    tracer = [sys.executable, "-I", "-S", "-B", str(Path(__file__).with_name("trace_program.py"))]
    _run_all([*tracer, str(log), str(program)], engine, scenarios, work)
    executed = set(log.read_text(encoding="utf-8").splitlines())
    return {path.name: _count_python(path, executed) for path in modules}


def _measure_writer(engine: Engine, scenarios: Sequence[Scenario], log: Path) -> FileCounts:
    """Trace the code of this project that writes input files."""
    before = sys.gettrace()
    sys.settrace(trace_into(str(log), str(Path(__file__).parent)))
    try:
        for scenario in scenarios:
            input_text(scenario, engine)
    finally:
        sys.settrace(before)
    executed = set(log.read_text(encoding="utf-8").splitlines())
    return {path.name: _count_python(path, executed) for path in INPUT_FILE_SOURCES}


def _count_python(path: Path, executed: set[str]) -> Counts:
    """Return the lines of a module by the expressions that `trace_program` noted."""
    module = compile(path.read_bytes(), path.name, "exec", dont_inherit=True)
    counts: Counts = {}
    for code in _codes(module):
        for row, last_row, column, last_column in code.co_positions():
            if row and last_column:  # not the start of a module or function
                place = f"{path.name} {row} {last_row} {column} {last_column}"
                counts[row] = counts.get(row, True) and place in executed
    return counts


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _count_c(folder: Path) -> FileCounts:
    """Return the lines that gcov counted in a folder; nothing if nothing was counted."""
    counters = sorted(path.name for path in folder.glob("*.gcda"))
    command = ["gcov", "--json-format", "--stdout", *counters]
    texts = _call(command, "the counters cannot be read", folder) if counters else ""
    # A template is counted for each of its types, a header for each file that includes it.
    counted: dict[str, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for text in texts.splitlines():
        for file in json.loads(text)["files"]:
            for line in file["lines"]:
                is_executed = line["count"] > 0 and not line["unexecuted_block"]
                counted[Path(file["file"]).name][line["line_number"]].append(is_executed)
    return {name: {n: any(v) for n, v in lines.items()} for name, lines in counted.items()}


def _run_all(program: list[str], engine: Engine, scenarios: Sequence[Scenario], work: Path) -> None:
    for scenario in scenarios:
        folder = work / "runs" / scenario.id
        write_inputs(folder, scenario, engine)
        files = ["--input", str(folder / INPUT_FILE), "--output", str(folder / "out")]
        _call([*program, *files], f"scenario {scenario.id} fails")


def _call(command: list[str], failure: str, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    except FileNotFoundError:
        raise RunError(f"{failure}: {command[0]} is missing: apt-get install gcc g++") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it printed nothing"]
        raise RunError(f"{failure}: {lines[-1]}")
    return done.stdout


_MEASURES = {"ns3": _measure_ns3, "ns2": _measure_ns2, "linux": _measure_linux}
