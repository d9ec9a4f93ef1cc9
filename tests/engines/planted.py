"""A tiny paper, whose numbers are made by a set-up and readings that are planted in it."""

import math
from pathlib import Path

import numpy as np
import yaml

from tests.engines.engine_scenarios import link, red, tcp

ROOT = Path(__file__).resolve().parents[2]
RATES = ("1000", "2000", "3000", "4000")
DELAYS = ("5", "20", "40", "80")
TEST = "a test"
ASSUMED = {"reason": TEST, "source": TEST}
PUBLISHED = {"place": TEST}


def number(value, unit, **assumed):
    tag = {"assumed": ASSUMED | assumed} if assumed else {"published": PUBLISHED}
    return {"value": value, "unit": unit, **tag}


QUEUE = {"kind": "droptail", "limit_packets": "$queue_packets"}
QUEUES = {"queue_ab": QUEUE, "queue_ba": QUEUE}
TOPOLOGY = {
    "nodes": ["s1", "s2", "r1", "r2", "d1", "d2"],
    "links": [
        *(link(f"access{n}", f"s{n}", "r1", "$access_rate_bps", 0.002, **QUEUES) for n in (1, 2)),
        link("bottleneck", "r1", "r2", "$rate_bps", "$delay_s", **QUEUES),
        *(link(f"exit{n}", "r2", f"d{n}", 20e6, 0.002, **QUEUES) for n in (1, 2)),
    ],
}
FLOWS = [
    tcp(
        *("f{i}", "newreno"),
        **{"repeat": 2, "source": "s{i}", "destination": "d{i}", "start_s": 0.1},
        **{"segment_bytes": "$segment_bytes", "maximum_window_bytes": "$window_bytes"},
        **{"initial_window_segments": 2, "minimum_rto_s": 0.2, "initial_rto_s": 1.0},
    )
]
PARAMETERS = {
    "access_rate_bps": number(1.5e6, "bit/s"),
    "rate_bps": number(2e6, "bit/s"),
    "delay_s": number(0.02, "s"),
    "queue_packets": number(50, "packets", range=[1, 100]),
    "segment_bytes": number(1000, "bytes", range=[500, 1460]),
    "window_bytes": number(64000, "bytes", range=[4000, 256000]),
}


def experiment(name, levels, parameter, scale):
    keys = [
        {"key": key, "label": key, "value": float(key), "set": {parameter: float(key) * scale}}
        for key in levels
    ]
    return {
        **{"id": name, "type": "throughput_tables", "title": name, "place": TEST},
        "question": "Is the cause found?",
        "factors": [{"id": name, "label": name, "published": PUBLISHED, "levels": keys}],
        **{"topology": TOPOLOGY, "flows": FLOWS, "duration_s": 10.0, "sampling_interval_s": 1.0},
    }


def table(name):
    columns = {
        column: {"metric": metric, "aggregate": aggregate}
        | {"tolerance": {"relative": 0.1, "reason": TEST}}
        for column, metric, aggregate in (
            ("throughput", "throughput_bps", "sum"),
            ("delay", "delay_mean_s", "pooled"),
        )
    }
    known = {"id": name, "title": name, "experiment": name, "row_factor": name}
    return known | {"columns": columns}


def delay_claim(name, rate, expect):
    of = {"experiment": "rate", "metric": "delay_mean_s", "aggregate": "pooled"}
    of |= {"where": {"rate": [rate]}}
    test = {"kind": "value", "of": of, "reduce": "mean", "expect": expect}
    return {"id": name, "quote": TEST, "place": TEST, "reading": TEST, "test": test}


#: Short delays, which a short queue makes hold together, and one that is never beside them.
CLAIMS = [
    *(delay_claim(f"short_{rate[0]}", rate, {"at_most": 0.12}) for rate in RATES),
    delay_claim("long_1", "1000", {"at_least": 0.2}),
]
STUDY = {
    **{"schema_version": 1, "id": "planted", "title": "A planted cause"},
    "bibliography": {"title": "A planted cause", "authors": ["Nobody"], "year": 2026},
    "original_system": {"engine": "ns3", "description": TEST},
    "notes": {"scope": TEST, "easy": TEST, "hard": TEST},
    "parameters": PARAMETERS,
    "experiments": [
        experiment("rate", RATES, "rate_bps", 1000.0),
        experiment("delay", DELAYS, "delay_s", 0.001),
    ],
    "tables": [table("rate"), table("delay")],
    "claims": CLAIMS,
}


def cause(name, levels=None, **further):
    """A cause; `levels` by key."""
    found = {"id": name, "title": name, "reason": TEST, "source": TEST} | further
    own = {"levels": [{"key": key} | what for key, what in levels.items()]} if levels else {}
    return found | own


def configured(name, key, **variation):
    return cause(name, {key: {"set": variation}})


def read_as(name, key, column, **reading):
    return cause(name, {key: {"reading": reading}}, columns=[column])


RED = red(5, 15) | {"limit_packets": 50, "queue_weight": 0.02}
LOSS = {"kind": "random", "probability": 0.02}
GAP = {"set": {"flows": {"f{i}": {"start_gap_s": [4.0, 4.0]}}}}
CAUSES = [
    read_as("bytes", "x8", "throughput", factor=8.0),
    read_as("mean", "of_flows", "throughput", aggregate="mean"),
    read_as("round_trip", "half", "delay", metric="rtt_mean_s", aggregate="mean", factor=2.0),
    configured("access_unit", "x8", rate_factor={"access1": 8, "access2": 8}),
    cause(
        "queue",
        range={"low": 2, "high": 40, "log": True, "whole": True, "steps": 16, "tried": [5, 15]},
        set={"parameters": {"queue_packets": "$value"}},
    ),
    configured("red", "usual", links={"bottleneck": {"queue_ab": RED}}),
    configured("loss", "2_percent", links={"bottleneck": {"loss_ab": LOSS}}),
    configured("window", "8_kb", parameters={"window_bytes": 8000}),
    configured("segment", "500", parameters={"segment_bytes": 500}),
    cause("start_gap", {"4_s": GAP}, outside_ledger=TEST),
]
EXPLANATIONS = {
    "study": "planted",
    "score": "cells",
    "cpu_budget_s": 600.0,
    "held_out": {"rows": {"rate": ["2000"], "delay": ["40"]}, "reason": TEST},
    "stages": [{"rows": {"rate": ["1000", "3000", "4000"], "delay": ["5", "20", "80"]}}],
    "causes": CAUSES,
}


BY_CLAIMS = EXPLANATIONS | {
    **{"score": "claims", "held_out": {"claims": ["short_3"], "reason": TEST}},
    "stages": [{"levels": {"rate": {}}}],
}


def project(folder):
    """Write the tiny paper's files, but its numbers, below a folder; return it."""
    for path, document in (
        ("configs/studies/planted/study.yaml", STUDY),
        ("configs/explanations/planted.yaml", EXPLANATIONS),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(yaml.safe_dump(document), encoding="utf-8")
    settings = yaml.safe_load((ROOT / "configs/sensitivity.yaml").read_text(encoding="utf-8"))
    settings["explanation"] |= {"trials": 4, "permutations": 100, "paired_causes": 5, "depth": 4}
    (folder / "configs/sensitivity.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (folder / "data/published").mkdir(parents=True)
    return folder


def publish(folder, flows_of, read, noise, seed):
    """Print numbers from runs, read in a way and with noise.

    `flows_of` has the rows of flows.csv by experiment and level, of which `read` makes the value of
    each column; `noise` is the standard deviation of the logarithm.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    units = {"throughput": "bit/s", "delay": "s"}
    lines = ["table,row,column,unit,value,printed,place"]
    for (name, key), flows in flows_of.items():
        for column, value in read(flows).items():
            printed = f"{value * math.exp(noise * random.standard_normal()):.6g}"
            lines.append(f"{name},{key},{column},{units[column]},{printed},{printed},{TEST}")
    path = folder / "data/published/planted.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
