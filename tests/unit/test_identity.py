"""Identity: a scenario's id is what it says, and every key reaches every engine or is refused."""

import importlib
import itertools
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from measurements.scenarios import cake, cbr, codel, droptail, linux_tcp, pfifo, pie, tcp
from measurements.scenarios import linux_red as red
from pydantic import BaseModel
from replication.base.files import read_yaml
from replication.engines.catalogue import ENGINES, LINUX, NS2, NS3
from replication.engines.input_file import INPUT_FILE, input_text
from replication.study import link
from replication.study.scenario import CbrFlow, Host, Scenario, TcpFlow

from tests.unit.conftest import ROOT, minimal_scenario

COMMON, LAUNCHER, GUEST, NS3_SOURCES = (
    ROOT / "workflow/engines" / folder
    for folder in ("common", "linux/launcher", "linux/guest", "ns3/src")
)
sys.path[:0] = [str(COMMON), str(LAUNCHER)]
READER = importlib.import_module("input_reader")
GUEST_INPUT = importlib.import_module("guest_input")

PARTS: dict[str, type[BaseModel]] = {
    "host": Host,
    "link": link.Link,
    "tcp": TcpFlow,
    "cbr": CbrFlow,
    "droptail": link.DropTail,
    "pfifo": link.Pfifo,
    "red": link.Red,
    "codel": link.CoDel,
    "fq_codel": link.FqCoDel,
    "pie": link.Pie,
    "fq_pie": link.FqPie,
    "cake": link.Cake,
    "random": link.RandomLoss,
    "listed": link.ListedLoss,
    "token_bucket": link.TokenBucket,
    "tbf": link.TokenBucketFilter,
    "change": link.LinkChange,
    "series_file": link.SeriesFile,
}
QUEUES = {
    "droptail": droptail(20),
    "pfifo": pfifo(20),
    "red": red(5, 15),
    "codel": codel(),
    "fq_codel": codel(kind="fq_codel"),
    "pie": pie(),
    "fq_pie": pie(kind="fq_pie"),
    "cake": cake(),
}
RANDOM = {"kind": "random", "probability": 0.1}
#: Values that differ from the default where a rule for its type gives none.
VALUES = {
    "congestion_control": "cubic",
    "recovery": "prr",
    "connect_s": 0.25,
    "cubic_beta": 0.5,
    "loss_ab": RANDOM,
    "loss_ba": RANDOM,
    "shaper_ab": {"kind": "token_bucket", "burst_bytes": 1600, "line_rate_bps": 1e9},
    "shaper_ba": {"kind": "tbf", "burst_bytes": 3000, "line_rate_bps": 1e9},
    "changes": [{"at_s": 1, "rate_bps": 2e6, "delay_s": 0.02, "loss_ab": 0.1, "loss_ba": 0.2}],
    "opportunities_ab": [0, 0, 3],
    "opportunities_ba": [1, 2],
    "timer_hz": 1000,
    "loss_probe_floor": "2 jiffies",
    "limit_packets": 30,
    "limit_bytes": 30000,
    "frame_bytes": 14,
    "jitter_s": 0.002,
}


def defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Return the defaults of a model's keys, as in JSON."""
    fields = model.model_fields.items()
    known = {name: field.default for name, field in fields if not field.is_required()}
    return json.loads(json.dumps(known, default=lambda value: value.model_dump()))


def test_defaults_of_scenarios_match_the_committed_table():
    table = read_yaml(ROOT / "tests/unit/scenario_defaults.yaml")
    assert table == {name: defaults(model) for name, model in (PARTS | {"run": Scenario}).items()}


def test_every_model_of_a_scenario_is_tested_here():
    used = {model for model in vars(link).values() if isinstance(model, type)}
    used = {model for model in used if issubclass(model, link.Document)} - {link.Document}
    # A file may write a list as a progression; a scenario has the numbers.
    used -= {link.Progression}
    assert used | {Host, TcpFlow, CbrFlow} == set(PARTS.values())


def test_a_new_optional_key_changes_no_id():
    class Later(Scenario):
        """A scenario with a key that came later."""

        reordering_s: float = 0.5

    document = minimal_scenario()
    assert Later.model_validate(document).id == Scenario.model_validate(document).id
    set_to = Later.model_validate(document | {"reordering_s": 0.25})
    assert set_to.id != Scenario.model_validate(document).id


def test_kinds_with_the_same_settings_have_different_ids():
    ids = set()
    for queue in (
        pie(),
        pie(kind="fq_pie"),
        codel(),
        codel(kind="fq_codel"),
        pfifo(9),
        droptail(9),
    ):
        document = minimal_scenario()
        document["links"][0]["queue_ab"] = queue
        ids.add(Scenario.model_validate(document).id)
    assert len(ids) == 6


def other_value(name: str, default: Any) -> Any:
    """Return a value of a key that is not its default."""
    if name in VALUES:
        return VALUES[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float) and default:
        return default * 2
    return 20000 if name.endswith("bytes") else True


def probes() -> Iterator[tuple[str, str]]:
    """Yield each part and optional key."""
    for part, model in PARTS.items():
        for name in defaults(model):
            yield part, name


def probe(engine: str, part: str, name: str) -> Scenario:
    """Return a scenario for an engine in which one key is not at its default."""
    changed = {name: other_value(name, defaults(PARTS[part])[name])}
    document = minimal_scenario()
    path = document["links"][0]
    ends = {"source": "a", "destination": "b", "start_s": 0.5}
    flow = linux_tcp("t", **ends) if engine == "linux" else tcp("t", "newreno", **ends)
    document["flows"] = [flow, cbr("f", 1e5, **ends)]
    if part == "host":
        document["host"] = changed
        flow["clock_granularity_s"] = 1 / changed.get("timer_hz", 250)
    elif part == "link":
        path |= changed
    elif part == "tcp":
        control = name.split("_")[0] if name.startswith(("vegas", "cubic")) else None
        flow |= changed | ({"congestion_control": control} if control else {})
        if control == "cubic" and engine == "ns2":
            flow |= {"sack": True, "limited_transmit": True} | changed
    elif part == "change":
        path["changes"] = [{"at_s": 1, "rate_bps": 2e6, name: 1}]
    elif part in QUEUES:
        queue = QUEUES[part] | changed
        if name == "limit_bytes":
            del queue["limit_packets"]
        path["queue_ab"] = queue
    return Scenario.model_validate(document)


def literals(folder, pattern: str) -> set[str]:
    """Return the texts in quotes in the sources of a folder."""
    texts = [path.read_text(encoding="utf-8") for path in folder.glob(pattern)]
    return set(re.findall(r'"(\w+)"', "\n".join(texts)))


def names_in(text: str) -> set[str]:
    """Return the names in the lines of an input file."""
    lines = [line.split() for line in text.splitlines()]
    return set(itertools.chain(*(words[1::2] for words in lines)))


@pytest.mark.parametrize(("part", "name"), list(probes()))
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_every_key_is_read_by_every_engine_or_refused_by_name(engine, part, name, tmp_path):
    scenario = probe(engine.name, part, name)
    if refusal := engine.refusal(scenario):
        assert refusal.startswith(f"{engine.name} has no ")
        return
    text = input_text(scenario, engine)
    if engine == NS3:
        assert names_in(text) <= literals(NS3_SOURCES, "*.cpp")
        return
    (tmp_path / INPUT_FILE).write_text(text)
    read = READER.read_input_file(str(tmp_path / INPUT_FILE), engine.name)
    if engine == LINUX:
        assert names_in(GUEST_INPUT.make_guest_input(read)) <= literals(GUEST, "*.c")


def test_a_key_that_an_engine_does_not_read_is_refused(tmp_path):
    document = json.loads(input_text(Scenario.model_validate(minimal_scenario()), NS2))
    document["links"][0]["reordering_ns"] = 1
    (tmp_path / INPUT_FILE).write_text(json.dumps(document))
    with pytest.raises(READER.InputError, match="reordering_ns"):
        READER.read_input_file(str(tmp_path / INPUT_FILE), "ns2")
