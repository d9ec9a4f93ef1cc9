"""Bad plans, the same for every engine: exit code 2, one line that says what, nothing written."""

import pytest

from tests.engines.engine_bench import write_plan
from tests.engines.engine_scenarios import cbr, single_link

#: A line by place (0 plan, 1 run, 2 host, 3 and 4 node, 5 link, 6 and 7 queues, 8 and 9 losses, 10
#: and 11 shapers, 12 flow), what is replaced there by what, and what is said.
REPLACED = [
    (0, "version 1", "version 2", "version 2"),
    (1, " seed 1", "", "seed"),
    (1, "seed 1", "seed one", "seed"),
    (2, "offload 0", "offload no", "segmentation_offload"),
    (5, "rate_bps", "delay_s", "rate_bps"),
    (5, "rate_bps 2000000.0", "rate_bps inf", "rate_bps"),
    (5, "b 1", "b 7", "7"),
    (6, "droptail", "sfq", "sfq"),
    (12, "flow ", "stream ", "stream"),
]
#: What becomes of the lines, and what is said.
CUT = {
    "nothing": (lambda lines: [], "line 1"),
    "another engine": (
        lambda lines: [f"plan version 1 engine ns1 scenario {'0' * 64}\n"],
        "engine ns1",
    ),
    "missing line": (lambda lines: lines[:2] + lines[3:], "line 3"),
    "truncated": (lambda lines: lines[:-1], "line"),
    "two plans": (lambda lines: lines * 2, "end"),
}


@pytest.fixture
def plan(bench, tmp_path):
    """Return the path of a plan that runs."""
    scenario = single_link([bench.tcp("t"), cbr("c", 1e5)], duration_s=1)
    return write_plan(tmp_path, bench.name, scenario)


def refused(bench, plan, word):
    """Run a plan and require a refusal in one line that names it and has a word."""
    before = sorted(plan.parent.iterdir())
    done = bench.invoke("--plan", plan, "--output", plan.parent / "out")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    assert plan.name in done.stderr and word in done.stderr
    assert sorted(plan.parent.iterdir()) == before


@pytest.mark.parametrize(("at", "old", "new", "word"), REPLACED)
def test_a_wrong_word_is_refused(bench, plan, at, old, new, word):
    lines = plan.read_text().splitlines(keepends=True)
    assert old in lines[at]
    lines[at] = lines[at].replace(old, new, 1)
    plan.write_text("".join(lines))
    refused(bench, plan, word)


@pytest.mark.parametrize("what", CUT)
def test_what_is_no_plan_is_refused(bench, plan, what):
    change, word = CUT[what]
    plan.write_text("".join(change(plan.read_text().splitlines(keepends=True))))
    refused(bench, plan, word)


@pytest.mark.parametrize("name", ["none.txt", "."])
def test_what_is_no_file_is_refused(bench, tmp_path, name):
    refused(bench, tmp_path / name, "")


def test_a_congestion_control_that_is_not_there_is_refused(bench, plan):
    plan.write_text(plan.read_text().replace(f" {bench.traits.control} ", " quic "))
    done = bench.invoke("--plan", plan, "--output", plan.parent / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "'quic'" in done.stderr


@pytest.mark.parametrize("words", [[], ["--plan"], ["--what", "x"], ["--plan", "x"]])
def test_bad_usage_is_refused(bench, words):
    done = bench.invoke(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_failed_run_leaves_earlier_results_alone(bench, plan):
    words, output = ("--plan", plan, "--output", plan.parent / "out"), plan.parent / "out"
    bench.invoke(*words)
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    plan.write_text(plan.read_text().replace("seed 1", "seed x"))
    assert bench.invoke(*words).returncode == 2
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before != {}
