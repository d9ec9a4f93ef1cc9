"""Bad plans, the same for every engine: exit code 2, one line that says what, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.engine_bench import Bench, write_plan
from tests.engines.engine_scenarios import Json, cbr, single_link

Change = Callable[[list[str]], list[str]]


def replaced(at: int, old: str, new: str) -> Change:
    """Return what replaces a text in a line."""

    def change(lines: list[str]) -> list[str]:
        assert old in lines[at]
        return [*lines[:at], lines[at].replace(old, new, 1), *lines[at + 1 :]]

    return change


#: By place: 0 plan, 1 run, 2 host, 3 and 4 node, 5 link, 6 and 7 queues, 8 and 9 losses,
#: 10 and 11 shapers, 12 flow.
CHANGES: dict[str, tuple[Change, str]] = {
    "nothing": (lambda lines: [], "line 1"),
    "another version": (replaced(0, "version 1", "version 2"), "version 2"),
    "another engine": (lambda lines: [" ".join(["plan version 1 engine ns1 scenario", "0" * 64])],
                       "engine ns1"),
    "unknown word": (replaced(12, "flow ", "stream "), "stream"),
    "missing line": (lambda lines: lines[:2] + lines[3:], "line 3"),
    "missing field": (replaced(1, " seed 1", ""), "seed"),
    "field out of place": (replaced(5, "rate_bps", "delay_s"), "rate_bps"),
    "no number": (replaced(1, "seed 1", "seed one"), "seed"),
    "infinite": (replaced(5, "rate_bps 2000000.0", "rate_bps inf"), "rate_bps"),
    "no truth value": (replaced(2, "offload 0", "offload no"), "segmentation_offload"),
    "unknown kind": (replaced(6, "droptail", "sfq"), "sfq"),
    "unknown node": (replaced(5, "b 1", "b 7"), "7"),
    "truncated": (lambda lines: lines[:-1], "line"),
    "two plans": (lambda lines: lines * 2, "end"),
}  # fmt: skip


@pytest.fixture
def good(bench: Bench) -> Json:
    """Return a scenario that runs."""
    return single_link([bench.tcp("t"), cbr("c", 1e5)], duration_s=1)


def refused(bench: Bench, folder: Path, plan: Path, *words: str) -> None:
    """Run a plan and require a refusal in one line that names it and has `words`."""
    before = sorted(folder.iterdir())
    done = bench.invoke("--plan", plan, "--output", folder / "out")
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in (plan.name, *words):
        assert word in done.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_no_plan_is_refused(bench: Bench, good: Json, tmp_path: Path, what: str) -> None:
    change, word = CHANGES[what]
    path = write_plan(tmp_path, bench.name, good)
    lines = change(path.read_text().splitlines())
    path.write_text("".join(f"{line}\n" for line in lines))
    refused(bench, tmp_path, path, word)


@pytest.mark.parametrize("name", ["none.txt", "."])
def test_what_is_no_file_is_refused(bench: Bench, tmp_path: Path, name: str) -> None:
    refused(bench, tmp_path, tmp_path / name)


def test_a_congestion_control_that_is_not_there_is_refused(
    bench: Bench, good: Json, tmp_path: Path
) -> None:
    path = write_plan(tmp_path, bench.name, good)
    path.write_text(path.read_text().replace(f" {bench.traits.control} ", " quic "))
    done = bench.invoke("--plan", path, "--output", tmp_path / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "'quic'" in done.stderr


@pytest.mark.parametrize("words", [[], ["--plan"], ["--what", "x"], ["--plan", "x"]])
def test_bad_usage_is_refused(bench: Bench, words: list[str]) -> None:
    done = bench.invoke(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_failed_run_leaves_earlier_results_alone(
    bench: Bench, good: Json, tmp_path: Path
) -> None:
    path = write_plan(tmp_path, bench.name, good)
    words = ("--plan", path, "--output", tmp_path / "out")
    bench.invoke(*words)
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    assert before
    path.write_text(path.read_text().replace("seed 1", "seed x"))
    assert bench.invoke(*words).returncode == 2
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
