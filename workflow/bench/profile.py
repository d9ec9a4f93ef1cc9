"""The profile by which ns-3 from its sources is optimised: how often each branch of it is taken."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.engines.lowering import PLAN_FILE, write_inputs
from replication.engines.ns3_source import COMPILER, COUNTING, build_ns3, profile_of
from replication.report.archive import pack
from replication.study.files import atomic

from bench.engine import compile_program
from bench.source_build import trained
from bench.timed import Announce, timed

#: Of a file of counts: when its object was compiled. What reads the counts does not ask.
_STAMP = slice(8, 12)


def make_profile(root: Path, jobs: int, say: Announce) -> Path:
    """Build ns-3 so that it counts, run scenarios that `source_build` does not, keep the counts.

    Raises
    ------
    InputError, RunError
        As `build_ns3` does.
    """
    with tempfile.TemporaryDirectory(prefix="profile-") as name:
        folder = Path(name)
        say("building ns-3 from its sources so that it counts (some 5 CPU minutes)")
        build_ns3(root, folder / "ns3", jobs, counting=True)
        compile_program(root, folder / "ns3", folder / "program", f"{COMPILER} {COUNTING}")
        scenarios = trained(root)
        say(f"running {len(scenarios)} scenarios")
        # What counts writes to the place of the objects, below another root.
        environment = os.environ | {"GCOV_PREFIX": str(folder / "counts"), "LC_ALL": "C"}
        for scenario in scenarios:
            work = folder / scenario.id
            write_inputs(work, scenario, ENGINES["ns3"])
            command = [
                str(folder / "program" / "replicate-ns3"),
                "--plan",
                PLAN_FILE,
                "--output",
                ".",
            ]
            timed(command, work, environment)
        return _keep(folder / "counts", profile_of(root))


def _keep(counts: Path, archive: Path) -> Path:
    """Write the counts of ns-3's own objects to an archive, named as in the folder of a build."""
    files = {}
    for path in counts.rglob("*.gcda"):
        _, build, inside = path.as_posix().partition("/build/")
        if build:
            content = path.read_bytes()
            files[inside] = content[: _STAMP.start] + bytes(4) + content[_STAMP.stop :]
    with atomic(archive) as temporary:
        temporary.write_bytes(pack(files))
    return archive
