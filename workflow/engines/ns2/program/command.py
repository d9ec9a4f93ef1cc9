"""Command line: checks, runs ns-2, writes the result files.

Exit code 0: done. 2: bad input or an unsupported feature. 3: a defect (a law was broken, or ns-2
failed). On failure one line says why, and nothing is written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from agents import SIMULATOR_VERSION
from input_reader import read_input_file
from orders import has_syn, make_orders
from reader import BrokenRunError, Reader
from scenario import InputError, ListedLoss, Scenario
from tables import TRACE_HEAD, flows_csv, run_json, series_csv

USAGE = "usage: replicate-ns2 --input FILE --output DIR [--trace FILE.csv]"
DRIVER = Path(__file__).resolve().parent / "driver.tcl"


def main(words: list[str]) -> int:
    """Run the command; return its exit code."""
    try:
        return _command(words)
    except InputError as error:
        return _fail(2, str(error))
    except BrokenRunError as error:
        return _fail(3, f"{error} (a defect of replicate-ns2 or ns-2: please report it)")
    except OSError as error:
        return _fail(2, f"{error.filename}: {error.strerror}: give a writable place with room")


def _fail(code: int, message: str) -> int:
    print(f"replicate-ns2: {' '.join(message.split())}", file=sys.stderr)
    return code


def _command(words: list[str]) -> int:
    if words == ["--version"]:
        print(f"ns2 {SIMULATOR_VERSION}")
        return 0
    if words in (["--help"], ["-h"]):
        print(f"{USAGE}\n       replicate-ns2 --version | --help")
        return 0
    options = dict(zip(words[::2], words[1::2], strict=False))
    known = {"--input", "--output", "--trace"}
    if len(words) != 2 * len(options) or not {"--input", "--output"} <= set(options) <= known:
        raise InputError(USAGE)
    _run(options["--input"], Path(options["--output"]), options.get("--trace"))
    return 0


def _run(input_path: str, output: Path, trace_path: str | None) -> None:
    scenario = read_input_file(input_path, "ns2")
    try:
        orders = make_orders(scenario)
        trace: list[str] | None = None if trace_path is None else []
        reader = Reader(scenario, trace)
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".ns2.", dir=output) as folder:
            work = Path(folder)
            _simulate(orders, work, reader, trace is not None)
            _check_listed(scenario, reader)
            _write(work, output / "flows.csv", [flows_csv(scenario, reader)])
            _write(work, output / "series.csv", series_csv(scenario, reader))
            if trace_path is not None and trace is not None:
                Path(trace_path).write_text("\n".join([TRACE_HEAD, *trace]) + "\n")
            _write(work, output / "run.json", [run_json(scenario, reader)])
    except InputError as error:
        raise InputError(f"{input_path}: {error}") from None


def _write(work: Path, path: Path, pieces: Iterable[str]) -> None:
    """Write to a temporary file, then move it into place, so that a file is whole or absent."""
    with (work / path.name).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)
    (work / path.name).replace(path)


def _simulate(orders: str, work: Path, reader: Reader, calls: bool) -> None:
    (work / "orders").write_text(orders)
    receive, send = os.pipe()
    with (work / "errors").open("wb") as stderr:
        try:
            # stdout is ns-2's own chatter (addresses of objects among it).
            process = subprocess.Popen(
                ["ns", str(DRIVER), "orders", f"/dev/fd/{send}", str(int(calls))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=(send,),
                cwd=work,
            )
        except FileNotFoundError:
            os.close(receive)
            raise InputError("there is no ns: install Debian's package ns2") from None
        finally:
            os.close(send)
    broken = None
    with os.fdopen(receive, "rb", buffering=1 << 18) as lines:
        try:
            reader.read(lines)
        except BrokenRunError as error:
            broken = error
    try:
        status = process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    _check_exit(status, work / "errors", broken)


def _check_exit(status: int, errors: Path, broken: BrokenRunError | None) -> None:
    words = errors.read_text(encoding="utf-8", errors="replace").strip()
    if status == 2:
        raise InputError(words)
    if broken is not None and "broken pipe" in words:
        raise broken  # ns-2 failed only because the reader had given up
    if status not in (0, -signal.SIGKILL) or words:
        first = words.splitlines()[0] if words else "it printed nothing"
        raise BrokenRunError(f"ns-2 failed with exit code {status}: {first}")
    if broken is not None:
        raise broken


def _check_listed(scenario: Scenario, reader: Reader) -> None:
    """Refuse a run in which a SYN sent again shifted the numbers of listed losses."""
    for link in scenario.links:
        for loss in link.losses:
            if not isinstance(loss, ListedLoss) or not has_syn(scenario.flows[loss.flow]):
                continue
            if reader.flows[loss.flow].syns_again:
                raise InputError(
                    f"link {link.id}: listed losses: not supported by ns2 where the flow's SYN is"
                    " lost too; let the SYN through"
                )
