"""Lines that canonical scenarios do not execute: planted changes are found there, and only there.

`replicate engines --same` compares these lines of two versions of an engine.
"""

import shutil

import pytest
from replication.engines.canonical import canonical_scenarios
from replication.engines.catalogue import ENGINES
from replication.engines.executed_lines import unexecuted_lines
from replication.engines.source_lines import source_lines

from tests.workflow.project import ROOT

#: Changes by engine: file, line before, line after, and whether some version of it is listed.
PLANTED = {
    "ns3": [
        ("ns3/src/input_file.cpp", '": a queue without a limit"', '": none"', 1),
        ("ns3/src/metrics.cpp", '" sent, "', '" went out, "', 1),  # a statement over many lines
        ("ns3/src/queues.cpp", "kLinePackets = 1'000'000;", "kLinePackets = 999;", 1),
        ("ns3/src/metrics.cpp", "++m_count;", "m_count += 1;", 0),
    ],
    "ns2": [
        # Half of this is executed.
        ("ns2/program/command.py", "trace_path is None else []", "trace_path is None else [0]", 1),
        ("ns2/program/agents.py", "ns2 has no congestion control", "ns2 lacks", 1),
        ("ns2/program/agents.py", "UNLIMITED_PACKETS = 1 << 20", "UNLIMITED_PACKETS = 999", 1),
        ("ns2/driver.tcl", "proc ", "proc  ", 1),
        ("common/scenario.py", "path.append(hop)", "path += [hop]", 0),
    ],
    "linux": [
        ("linux/guest/queue.c", '"queue state: no counters"', '"no"', 1),
        ("linux/guest/queue.c", ")queue->rate_Bps : UINT32_MAX", ")queue->rate_Bps : 0", 1),
        ("linux/guest/main.c", "LONGEST_DRAIN_NS (3600", "LONGEST_DRAIN_NS (99", 1),
        ("linux/guest/queue.c", "options = request_nest(", "options =  request_nest(", 0),
        ("linux/launcher/machine.py", "os.chdir(work)", "os.chdir(str(work))", 0),
        ("linux/launcher/machine.py", '"it printed nothing"', '"nothing"', 1),
        ("linux/assemble.py", "console=True), 0o644", "console=True), 0o640", 1),
    ],
}


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the project's engines that builds what they need."""
    shutil.copytree(ROOT / "workflow/engines", tmp_path / "workflow/engines")
    for name in ("data", ".cache"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def plant(path, before, after):
    """Change the first line of a file that has `before`; return the line as it is now."""
    text = path.read_text()
    assert before in text, f"{path}: has no {before!r}"
    path.write_text(text.replace(before, after, 1))
    place = text.index(before)
    line = path.read_text()[text.rfind("\n", 0, place) + 1 :].partition("\n")[0]
    return line.strip()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_planted_change_is_listed_only_in_lines_that_are_not_executed(request, copy, engine):
    request.getfixturevalue(f"{engine}_program")
    planted = [
        (plant(copy / "workflow/engines" / file, before, after), bool(listed))
        for file, before, after, listed in PLANTED[engine]
    ]
    scenarios = canonical_scenarios(ROOT, ENGINES[engine])[:1]
    lines = unexecuted_lines(copy, ENGINES[engine], scenarios)
    assert {line: line in lines for line, _ in planted} == dict(planted)


def test_modules_of_the_package_may_move_but_other_imports_are_lines_of_code(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        "from replication.base.errors import (\n    InputError,\n)\n"
        "from subprocess import run\n"
        "import replication.base.errors\n"
    )
    lines, _ = source_lines(module)
    assert lines[:5] == ["", "", "", "from subprocess import run", "import replication.base.errors"]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_canonical_scenarios_use_every_feature_of_an_engine(engine):
    scenarios = canonical_scenarios(ROOT, engine)
    controls, queues, losses = set(), set(), set()
    for scenario in scenarios:
        controls |= {flow.congestion_control for flow in scenario.flows if flow.kind == "tcp"}
        queues |= {link.queue_ab.kind for link in scenario.links}
        for link in scenario.links:
            losses |= {loss.kind for loss in (link.loss_ab, link.loss_ba) if loss}
    assert controls == engine.congestion_controls
    assert queues == engine.queues
    assert losses == engine.losses
