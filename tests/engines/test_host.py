"""Settings of hosts that an engine does not have are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_scenarios import single_link, tcp
from linux_scenarios import linux_tcp
from test_ns3_input import refused


@pytest.mark.parametrize("engine", ["linux", "ns2", "ns3"])
def test_a_host_is_refused_by_name(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    invoke = request.getfixturevalue(f"invoke_{engine}")
    flow = linux_tcp("t") if engine == "linux" else tcp("t", "newreno")
    scenario = single_link([flow], duration_s=1) | {"host": {"timer_hz": 1000}}
    refused(invoke, tmp_path, json.dumps(scenario), "host")
