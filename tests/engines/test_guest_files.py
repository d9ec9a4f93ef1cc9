"""No files of the linux engine's guest use one another in a circle."""

import re
import subprocess
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

from tests.workflow.project import ROOT

GUEST = ROOT / "workflow/engines/linux/guest"
INCLUDED = re.compile(r'^#include "(\w+)\.h"$', re.MULTILINE)


def symbols(compiled: Path, which: str) -> list[str]:
    """Return the names that an object file defines, or that it takes from others."""
    command = ["nm", "--extern-only", "--format=just-symbols", which, str(compiled)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_files_of_the_guest_do_not_depend_on_one_another_in_a_circle(tmp_path):
    sources = map(str, GUEST.glob("*.c"))
    subprocess.run(["gcc", "-O2", "-c", *sources], check=True, cwd=tmp_path)
    compiled = list(tmp_path.glob("*.o"))
    home = {}
    for path in compiled:
        home.update(dict.fromkeys(symbols(path, "--defined-only"), path.stem))
    uses = defaultdict(set)
    for path in compiled:
        uses[path.stem] |= {
            home[name] for name in symbols(path, "--undefined-only") if name in home
        }
    for path in GUEST.glob("*.[ch]"):
        uses[path.stem] |= set(INCLUDED.findall(path.read_text())) - {path.stem}
    assert uses["report"] >= {"output", "socket"}
    TopologicalSorter(uses).prepare()  # CycleError names the files of a circle
