"""Invalid input files give the same on every engine: exit code 2, a one-line error, no output."""

import pytest

from tests.engines.engine_bench import write_input
from tests.engines.engine_scenarios import cbr, single_link

#: A line (0 input, 1 run, 2 host, 3 and 4 node, 5 link, 6 and 7 queues, 8 and 9 losses, 10 and 11
#: shapers, 12 flow), the text to replace, its replacement, and the expected message.
BAD_LINES = [
    (0, "version 1", "version 2", "version 2"),
    (0, "engine ", "engine other-", "engine other-"),
    (1, " seed 1", "", "seed"),
    (2, "offload 0", "offload no", "segmentation_offload"),
    (5, "rate_bps 2000000.0", "rate_bps inf", "rate_bps"),
    (6, "droptail", "sfq", "sfq"),
    (12, "control ", "control q", "'q"),
]


@pytest.mark.parametrize(("at", "old", "new", "said"), BAD_LINES)
def test_a_bad_line_is_refused_in_one_line_and_earlier_results_stay(
    bench, tmp_path, at, old, new, said
):
    scenario = single_link([bench.tcp("t"), cbr("c", 1e5)], duration_s=1)
    given, output = write_input(tmp_path, bench.name, scenario), tmp_path / "out"
    output.mkdir()
    (output / "flows.csv").write_text("earlier")
    lines = given.read_text().splitlines(keepends=True)
    assert old in lines[at]
    lines[at] = lines[at].replace(old, new, 1)
    given.write_text("".join(lines))
    done = bench.invoke("--input", given, "--output", output)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    assert said in done.stderr
    assert [path.read_text() for path in output.iterdir()] == ["earlier"]
