"""What only the linux engine has to show: its timer's expirations, its hashes."""

from __future__ import annotations

from engine_bench import Invoke, Run
from engine_scenarios import single_link
from linux_scenarios import linux_tcp


def test_timeouts_are_counted(run_linux: Run) -> None:
    # Of a window of two segments no loss leaves three duplicates: tail probes or the timer repair.
    flow = linux_tcp("t", maximum_window_bytes=2000, minimum_rto_s=0.2)
    loss = {"kind": "random", "probability": 0.3}
    # Long enough for any luck: a few losses in a row double the timer to many seconds.
    result = run_linux(single_link([flow], rate_bps=1e7, duration_s=200, loss=loss))
    assert result.number("t", "timeouts") >= 5
    assert result.number("t", "retransmissions") >= result.number("t", "timeouts")


def test_version_is_one_line_with_hashes(invoke_linux: Invoke) -> None:
    words = invoke_linux("--version").stdout.split()
    assert words[0] == "linux" and words[1].startswith("6.1.")
    assert words[2].startswith("kernel-") and words[3].startswith("guest-")
    assert invoke_linux("--help").stdout.startswith("usage: replicate-linux")
