"""A substitute for a simulator: writes correct tables, then runs a test's additions."""

from replication.base.table import FLOW_NUMBERS, SERIES_NUMBERS
from replication.simulate.process import Limits
from replication.simulate.run import Job
from replication.simulate.runtime import native
from replication.simulate.store import Store
from replication.study.scenario import Scenario

from tests.unit.conftest import minimal_scenario

#: Writes the tables of the contract for a scenario of one flow `f` and ten samples.
PROGRAM = """#!/bin/sh
[ "$1" = --input ] && [ "$3" = --output ] || exit 2
echo run >> "{counter}"
{first}
echo "flow,kind,{flow_columns}" > "$4/flows.csv"
echo "f,cbr{flow_values}" >> "$4/flows.csv"
echo "time_s,flow,link,{series_columns}" > "$4/series.csv"
for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i,f,{series_values}" >> "$4/series.csv"; done
id=$(sed -n '1s/.* scenario \\([0-9a-f]\\{{16\\}}\\).*/\\1/p' "$2")
echo "{{\\"engine\\": \\"ns3\\", \\"scenario\\": \\"$id\\"}}" > "$4/run.json"
{more}
"""


LIMITS = Limits(2**30, 10.0)


def make_job(folder, more="", first="", limits=LIMITS):
    """Return a job of three scenarios for a substitute that runs `first` and `more` in sh."""
    program = folder / "program"
    # All packets sent are received.
    values = {"packets_dropped": 0, "packets_in_flight": 0}
    text = PROGRAM.format(
        counter=folder / "counter",
        first=first,
        flow_columns=",".join(FLOW_NUMBERS),
        flow_values="".join(f",{values.get(name, 1)}" for name in FLOW_NUMBERS),
        series_columns=",".join(SERIES_NUMBERS),
        series_values=",1" * len(SERIES_NUMBERS),
        more=more,
    )
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    scenarios = {}
    for seed in (1, 2, 3):
        scenario = Scenario.model_validate(minimal_scenario() | {"seed": seed})
        scenarios[scenario.id] = scenario
    store = Store(folder / "store/ns3", "ns3")
    return Job("ns3", native(program, limits), scenarios, store)
