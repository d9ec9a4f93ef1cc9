"""replicate-linux: run one scenario on a Linux kernel and write its tables."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from guest_input import kernel_words, make_guest_input, needs_dctcp
from input_reader import read_input_file
from machine import DEFAULT_HZ, Boot, MachineError, kernel_version, run_machine
from scenario import InputError
from tables import Results, flows_csv, run_json, series_csv

HELP = """\
usage: replicate-linux --input FILE --output DIR
       replicate-linux --version | --help

Run one scenario on a Linux kernel in virtual time and write flows.csv, series.csv and run.json.
  --input FILE  the input file, which `replicate run` writes next to its results
  --output DIR  directory for the results; created if absent
  --version     print the version of the kernels that tick 250 times a second, and the hashes of
                both (without DCTCP, with it) and of the guest
exit code: 0 done, 2 bad input, 3 defect of this program
"""
#: The folder of kernel, archive and version; build has put this program into one of its folders.
FOLDER = Path(__file__).resolve().parents[1]


def _options(words: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for at in range(0, len(words), 2):
        if words[at] not in ("--input", "--output"):
            raise InputError(f"{words[at]}: unknown option: see --help")
        if at + 1 == len(words) or not words[at + 1]:
            raise InputError(f"{words[at]}: without a value: see --help")
        options[words[at]] = words[at + 1]
    if len(options) < 2:
        raise InputError("--input and --output: missing: give both, see --help")
    return options


def _folder(path: str) -> Path:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InputError(f"{path}: not a directory that can be created") from None
    return Path(path)


def _write_all(folder: Path, tables: dict[str, str]) -> None:
    """Write every table to a temporary file, then move them all; run.json comes last."""
    temporary = {name: folder / f".{name}.{os.getpid()}.tmp" for name in tables}
    try:
        for name, text in tables.items():
            temporary[name].write_text(text, encoding="utf-8")
        for name, path in temporary.items():
            path.rename(folder / name)
    except OSError as error:
        for path in temporary.values():
            path.unlink(missing_ok=True)
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None


def _run(options: dict[str, str]) -> None:
    path = options["--input"]
    scenario = read_input_file(path, "linux")
    timer_hz = scenario.host.timer_hz
    try:
        words, dctcp = kernel_words(scenario), needs_dctcp(scenario)
        boot = Boot(make_guest_input(scenario), timer_hz, scenario.run.seed, words, dctcp)
        version = kernel_version(FOLDER, timer_hz)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    output = _folder(options["--output"])
    results = Results(run_machine(FOLDER, boot, output))
    tables = {
        "flows.csv": flows_csv(scenario, results),
        "series.csv": series_csv(scenario, results),
        "run.json": run_json(scenario, results, version),
    }
    _write_all(output, tables)


def _complain(message: str, code: int) -> int:
    line = "".join(c if c.isprintable() else " " for c in f"replicate-linux: {message}")
    print(line.strip(), file=sys.stderr)
    return code


def main(words: list[str]) -> int:
    """Do what the command line says; return the exit code."""
    try:
        version = kernel_version(FOLDER, DEFAULT_HZ)
        if words == ["--help"]:
            print(HELP, end="")
        elif words == ["--version"]:
            print(f"linux {version} (replicate-linux)")
        else:
            _run(_options(words))
    except InputError as error:
        return _complain(str(error), 2)
    except (MachineError, OSError) as error:
        return _complain(f"internal error: {error}", 3)
    return 0
