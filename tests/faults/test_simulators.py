"""Simulators that fail, hang or lie: an error with its remedy, and nothing kept as a result."""

import pytest
from replication.run.process import Limits
from replication.run.simulate import run_job
from replication.study.errors import RunError

from tests.unit.stand_in import make_job

BRIEF = Limits(2**30, 1.0)
#: What the stand-in does, when, and a word of what must be said of it.
FAULTS = {
    "crash": ("exit 3", "first", "exit code 3"),
    "segfault": ("kill -SEGV $$", "first", "signal 11"),
    "killed": ("kill -KILL $$", "more", "signal 9"),
    "hang": ("sleep 60", "first", "time_limit_s"),
    "busy": ("while :; do :; done", "first", "time_limit_s"),
    "no-table": ('rm "$4/flows.csv"', "more", "flows.csv"),
    "empty-table": (': > "$4/flows.csv"', "more", "flows.csv"),
    "header-alone": ('sed -i 1q "$4/flows.csv"', "more", "other flows"),
    "flow-twice": ('sed -i "\\$p" "$4/flows.csv"', "more", "other flows"),
    "other-flow": ('sed -i s/^f,/g,/ "$4/flows.csv"', "more", "other flows"),
    "half-a-line": ('truncate -s -5 "$4/series.csv"', "more", "series.csv"),
    "half-a-table": ('sed -i 6q "$4/series.csv"', "more", "has 5 rows, not 10"),
    "lost-packets": ('sed -i "s/,0,0,/,0,7,/" "$4/flows.csv"', "more", "packets sent"),
    "infinite": ('sed -i "s/cbr,1/cbr,inf/" "$4/flows.csv"', "more", "not finite"),
    "not-a-number": ('sed -i "s/cbr,1/cbr,NaN/" "$4/flows.csv"', "more", "not finite"),
    "words": ('sed -i "s/cbr,1/cbr,much/" "$4/flows.csv"', "more", "flows.csv"),
    "binary": ('head -c 4096 /dev/urandom > "$4/series.csv"', "more", "series.csv"),
    "page": ('echo "<html>502 Bad Gateway</html>" > "$4/flows.csv"', "more", "flows.csv"),
    "other-run": ('echo "{\\"scenario\\": \\"0\\"}" > "$4/run.json"', "more", "of scenario '0'"),
    "half-json": ('echo "{\\"scen" > "$4/run.json"', "more", "run.json"),
    "memory": (
        "exec python3 -c 'b = bytearray(2**31)' || exit 1",
        "first",
        "memory_limit_bytes",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_simulator_is_an_error_and_leaves_no_result(fault, tmp_path, tally):
    script, when, word = FAULTS[fault]
    title = "a simulator that crashes, hangs, or writes something else than its results"
    with tally.trial("faults", "simulator", title) as trial:
        bad = make_job(tmp_path, **{when: script}, limits=BRIEF)
        with trial.refusal(RunError, f"scenario {min(bad.scenarios)} on ns3: .*{word}"):
            run_job(bad, lambda: None)
        assert list(bad.store.folder.iterdir()) == []
        # Mended, the same store gives every result.
        good = make_job(tmp_path)
        runs = run_job(good, lambda: None).values()
        assert [run.usage["reused"] for run in runs] == [False] * 3
