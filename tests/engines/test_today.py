"""A study on the kernel of today: run, judged, and the same again."""

import json
from pathlib import Path

from replication.run.process import Limits
from replication.run.runtime import Launch
from replication.sensitivity.machine import Machine
from replication.sensitivity.modern_kernel import run_today

ROOT = Path(__file__).resolve().parents[2]


def test_a_study_is_judged_on_the_kernel(linux_program, tmp_path):
    launch = Launch("native", "linux", linux_program, None)
    machine = Machine.open(ROOT, launch, tmp_path / "store", Limits(2**30, 120.0), [250])
    first, again = (run_today(ROOT, "nishitha", "quick", tmp_path / name, machine) for name in "ab")
    assert first.read_bytes() == again.read_bytes()
    claims = {one["claim"]: one for one in json.loads(first.read_text())["claims"]}
    # Reno and New Reno are one thing in the kernel; Vegas is not, and Tahoe is not there.
    assert {one["verdict"] for one in claims.values()} > {"not testable"}
    assert any(one["vacuous"] for one in claims.values())
