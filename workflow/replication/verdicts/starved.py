"""Starved flows: a compared flow that gets less than a tenth of its fair share of a link.

The fair share is the rate of a link over the number of flows that cross it, least along the path.
What is compared with a starved flow is compared with next to nothing: a delay without a queue, a
loss rate without packets. The verdict stays, and its reason says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from replication.engines.model import FlowPaths
from replication.metrics.metric import chosen_flows
from replication.metrics.results import Results
from replication.metrics.sampled import RUN
from replication.study.claim_model import Quantity
from replication.study.scenario import Scenario

#: Below this share of its fair share a flow is starved.
STARVED_SHARE = 0.1
#: Fair shares of a scenario's flows by its id, which is a hash of what decides them.
_SHARES: dict[str, dict[str, float]] = {}


def starved(results: Results, engine: str, compared: Sequence[Quantity]) -> pd.DataFrame:
    """Return replicate, scenario, flow, throughput_bps and fair_bps of starved TCP flows.

    The worst come first. One quantity alone compares no flows: nothing is starved.
    """
    found = []
    for wanted in compared if len(compared) > 1 else []:
        runs = results.runs(wanted.experiment, wanted.where)
        runs = runs[(runs["engine"] == engine) & runs["supported"]]
        flows = chosen_flows(results, runs, wanted.flows)
        flows = flows.loc[flows["kind"] == "tcp", [*RUN, "flow", "throughput_bps"]]
        found.append(runs[["replicate", *RUN]].merge(flows, on=RUN))
    columns = ["replicate", "scenario", "flow", "throughput_bps"]
    if not found:
        return pd.DataFrame(columns=[*columns, "fair_bps"])
    every = pd.concat(found)[columns].drop_duplicates()
    fair = [
        fair_shares(scenario, results.scenarios[scenario])[flow]
        for scenario, flow in zip(every["scenario"], every["flow"], strict=True)
    ]
    every = every.assign(fair_bps=fair, share=every["throughput_bps"] / fair)
    every = every[every["share"] < STARVED_SHARE].sort_values(["share", "scenario", "flow"])
    return every.drop(columns="share")


def starved_note(found: pd.DataFrame) -> str:
    """Return in words which flow is starved most; empty where none is."""
    if found.empty:
        return ""
    worst, runs = found.iloc[0], found[["replicate", "scenario"]].drop_duplicates()
    got, fair = (worst[name] / 1e6 for name in ("throughput_bps", "fair_bps"))
    more = "" if len(runs) == 1 else f" ({len(runs)} runs have a starved flow)"
    return f"Starved: flow {worst['flow']} gets {got:.2g} of {fair:.3g} Mbit/s{more}."


def fair_shares(scenario_id: str, document: Mapping[str, Any]) -> dict[str, float]:
    """Return the fair share of each flow of a scenario, in bit/s."""
    if scenario_id not in _SHARES:
        scenario = Scenario.model_validate(document)
        routes = FlowPaths(scenario)
        hops = {f.id: routes.hops(f.source, f.destination) for f in scenario.flows}
        crossing = Counter(hop for own in hops.values() for hop in own)
        rates = [link.rate_bps for link in scenario.links for _ in "ab"]
        _SHARES[scenario_id] = {
            flow: min(rates[hop] / crossing[hop] for hop in own) for flow, own in hops.items()
        }
    return _SHARES[scenario_id]
