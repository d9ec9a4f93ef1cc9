"""Bad plans, the same for every engine: exit code 2, one line that says what, nothing written."""

import pytest

from tests.engines.engine_bench import write_plan
from tests.engines.engine_scenarios import cbr, single_link


def replaced(at, old, new):
    """Return what replaces a text in a line that has it."""

    def change(lines):
        assert old in lines[at]
        return [*lines[:at], lines[at].replace(old, new, 1), *lines[at + 1 :]]

    return change


#: What becomes of the lines (0 plan, 1 run, 2 host, 3 and 4 node, 5 link, 6 and 7 queues, 8 and 9
#: losses, 10 and 11 shapers, 12 flow), and what is said.
BAD = {
    "version": (replaced(0, "version 1", "version 2"), "version 2"),
    "another engine": (replaced(0, "engine ", "engine other-"), "engine other-"),
    "no key": (replaced(1, " seed 1", ""), "seed"),
    "no number": (replaced(1, "seed 1", "seed one"), "seed"),
    "no truth value": (replaced(2, "offload 0", "offload no"), "segmentation_offload"),
    "key twice": (replaced(5, "rate_bps", "delay_s"), "rate_bps"),
    "infinite": (replaced(5, "rate_bps 2000000.0", "rate_bps inf"), "rate_bps"),
    "no such node": (replaced(5, "b 1", "b 7"), "7"),
    "no such queue": (replaced(6, "droptail", "sfq"), "sfq"),
    "no such line": (replaced(12, "flow ", "stream "), "stream"),
    "nothing": (lambda lines: [], "line 1"),
    "missing line": (lambda lines: lines[:2] + lines[3:], "line 3"),
    "truncated": (lambda lines: lines[:-1], "line"),
    "two plans": (lambda lines: lines * 2, "end"),
}


@pytest.fixture
def plan(bench, tmp_path):
    """Return the path of a plan that runs."""
    scenario = single_link([bench.tcp("t"), cbr("c", 1e5)], duration_s=1)
    return write_plan(tmp_path, bench.name, scenario)


def refused(bench, *words):
    """Require that a call is refused in one line; return the line."""
    done = bench.invoke(*words)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    return done.stderr


@pytest.mark.parametrize("what", BAD)
def test_a_bad_plan_is_refused(bench, plan, what):
    change, word = BAD[what]
    plan.write_text("".join(change(plan.read_text().splitlines(keepends=True))))
    said = refused(bench, "--plan", plan, "--output", plan.parent / "out")
    assert plan.name in said and word in said
    assert not (plan.parent / "out").exists()


def test_a_congestion_control_that_is_not_there_is_refused(bench, plan):
    plan.write_text(plan.read_text().replace(f" {bench.traits.control} ", " quic "))
    assert "'quic'" in refused(bench, "--plan", plan, "--output", plan.parent / "out")


@pytest.mark.parametrize("words", [[], ["--plan"], ["--what", "x"], ["--plan", "x"]])
def test_bad_usage_is_refused(bench, words):
    refused(bench, *words)


@pytest.mark.parametrize("name", ["none.txt", "."])
def test_what_is_no_file_is_refused(bench, tmp_path, name):
    refused(bench, "--plan", tmp_path / name, "--output", tmp_path / "out")


def test_a_failed_run_leaves_earlier_results_alone(bench, plan):
    words, output = ("--plan", plan, "--output", plan.parent / "out"), plan.parent / "out"
    bench.invoke(*words)
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    plan.write_text(plan.read_text().replace("seed 1", "seed x"))
    refused(bench, *words)
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before != {}
