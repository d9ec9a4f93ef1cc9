"""What the design believes of an engine's program is what the program says of itself."""

import json
import subprocess

import pytest
from replication.engines.catalogue import ENGINES


@pytest.fixture(params=sorted(ENGINES))
def engine(request):
    """Return an engine and its program."""
    return ENGINES[request.param], request.getfixturevalue(f"{request.param}_program")


def test_the_program_supports_what_the_design_believes(engine):
    believed, program = engine
    said = json.loads(subprocess.check_output([program, "--supports"], text=True))
    assert set(said["congestion_controls"]) == believed.congestion_controls
    assert set(said["queues"]) == believed.queues
    assert set(said["losses"]) == believed.losses


def test_the_program_is_of_the_pinned_version(engine):
    believed, program = engine
    said = subprocess.check_output([program, "--version"], text=True).split()
    assert said[0] == believed.name
    # ns-3 does not know the wheel's post-release, nor the workflow the kernel's patch level.
    assert believed.version.startswith(said[1]) or said[1].startswith(f"{believed.version}.")
