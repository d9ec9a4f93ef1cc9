"""What the design believes of the ns-3 program is what the program says of itself."""

import json
import subprocess

from replication.engine import NS3, NS3_VERSION


def test_the_program_supports_what_the_design_believes(ns3_program):
    said = json.loads(subprocess.check_output([ns3_program, "--supports"], text=True))
    assert set(said["congestion_controls"]) == NS3.congestion_controls
    assert set(said["queues"]) == NS3.queues
    assert set(said["losses"]) == NS3.losses


def test_the_program_is_of_the_pinned_version(ns3_program):
    said = subprocess.check_output([ns3_program, "--version"], text=True)
    assert said.split()[1] in NS3_VERSION
