"""A study on the kernel of today: run, judged, and the same again."""

import json
from dataclasses import replace
from pathlib import Path

from replication.run.launcher import Launch
from replication.run.process import Limits
from replication.run.simulate import open_job, run_job
from replication.sensitivity.today.run_today import run_today
from replication.sensitivity.why.bench import Machine

ROOT = Path(__file__).resolve().parents[2]


def test_a_study_is_judged_on_the_kernel(linux_program, tmp_path):
    launch = Launch("native", "linux", linux_program, None)
    job = open_job(ROOT, launch, {}, tmp_path / "store", Limits(2**30, 120.0))
    machine = Machine(
        "linux", job.store, lambda s: run_job(replace(job, scenarios=s), lambda: None), [250]
    )
    first, again = (run_today(ROOT, "nishitha", "quick", tmp_path / name, machine) for name in "ab")
    assert first.read_bytes() == again.read_bytes()
    claims = {one["claim"]: one for one in json.loads(first.read_text())["claims"]}
    # Reno and New Reno are one thing in the kernel; Vegas is not, and Tahoe is not there.
    assert {one["verdict"] for one in claims.values()} > {"not testable"}
    assert any(one["vacuous"] for one in claims.values())
