"""Every engine shows what configs/conformance.yaml expects, or deviates for a cause named there."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from replication.compare.conformance import (
    LIMITS,
    Runner,
    merge_conformance,
    run_checks,
    run_conformance,
)
from replication.compare.conformance_model import Conformance, load_conformance
from replication.engines.catalogue import ENGINES
from replication.run.runtime import Launch, native

ROOT = Path(__file__).parents[2]
DOCUMENT = load_conformance(ROOT)
CHECKS = [check.id for check in DOCUMENT.checks]
#: What ns-2 lacks; anything else that is refused is a check that was lost.
REFUSED = {("codel_wait", "ns2"), ("two_flows_codel_jain", "ns2")}
PERTURB = """#!/bin/sh
{program} "$@" || exit
while [ "$1" != --output ]; do shift; done
sed -i 's/{old}/{new}/' "$2/{table}"
"""


@pytest.fixture(scope="session")
def conform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., pd.DataFrame]:
    """Return a function that gives the rows of some engines, each run once.

    A finished run of the project, that of REPLICATION_FINISHED, has them.
    """
    folder = tmp_path_factory.mktemp("conformance")
    finished = os.environ.get("REPLICATION_FINISHED")

    @cache
    def run(engine: str) -> None:
        output = folder / "conformance" / f"{engine}.csv"
        if finished:
            output.parent.mkdir(exist_ok=True)
            for found in (Path(finished) / "data/reproduced/conformance").glob(f"{engine}.*"):
                shutil.copy(found, output.parent)
            return
        program = request.getfixturevalue(f"{engine}_program")
        run_conformance(DOCUMENT, ROOT, Launch("native", engine, program), "f", output)

    def rows(*engines: str) -> pd.DataFrame:
        for engine in engines:
            run(engine)
        merge_conformance(DOCUMENT, engines, folder)
        frame = pd.read_csv(folder / "conformance.csv", dtype={"within": str})
        return frame.set_index(["check", "engine"])

    return rows


def judged(rows: pd.DataFrame, check: str, engine: str) -> None:
    """Require the outcome that the document says: expected, or deviating for a named cause."""
    row = rows.loc[(check, engine)]
    said = f"{row['observed']:g}, expected {row['expected']:g} ({row['low']:g} to {row['high']:g})"
    if DOCUMENT.deviation(check, engine) is None:
        assert row["within"] == "true", f"a deviation without a name: {said}"
    else:
        assert row["within"] == "false", f"a known deviation that is gone: {said}"


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_an_engine_conforms(conform: Callable[..., pd.DataFrame], engine: str, check: str) -> None:
    rows = conform(engine)
    if (check, engine) in REFUSED:
        assert rows.loc[(check, engine), "within"] == "refused"
        assert f"{engine} has no" in rows.loc[(check, engine), "note"]
    else:
        judged(rows, check, engine)


@pytest.mark.parametrize("check", DOCUMENT.recovery.check_ids())
def test_our_variants_recover_as_those_of_the_reference(
    conform: Callable[..., pd.DataFrame], check: str
) -> None:
    engine = DOCUMENT.recovery.subject
    judged(conform(engine, DOCUMENT.recovery.reference), check, engine)


def only(*checks: str) -> Conformance:
    """Return the document with these checks alone."""
    return DOCUMENT.model_copy(update={"checks": [c for c in DOCUMENT.checks if c.id in checks]})


@pytest.mark.parametrize(
    ("check", "table", "old", "new"),
    [
        # A tenth of a second in a round trip, a packet that vanished, a window that stands still.
        ("empty_link_rtt", "flows.csv", r",0\.0\(6[0-9]*\),", r",0.1\1,"),
        ("cbr_drops", "flows.csv", r",0\.[0-9]*,0\.[0-9]*$", ",0.6,0.4"),
        ("slow_start", "series.csv", r"^\([0-9.]*,t,,[0-9]*\),[0-9]*", r"\1,1000"),
    ],
)
def test_a_perturbed_engine_does_not_conform(
    ns3_program: Path, tmp_path: Path, check: str, table: str, old: str, new: str
) -> None:
    program = tmp_path / "perturbed"
    quoted = shlex.quote(str(ns3_program))
    program.write_text(PERTURB.format(program=quoted, old=old, new=new, table=table))
    program.chmod(0o755)
    within = {}
    for name, path in (("plain", ns3_program), ("perturbed", program)):
        runtime = native(path, LIMITS)
        (row,) = run_checks(only(check), Runner.of("ns3", runtime, "f", tmp_path)).to_dict(
            "records"
        )
        runtime.close()
        within[name] = row["within"]
    assert within == {"plain": "true", "perturbed": "false"}
