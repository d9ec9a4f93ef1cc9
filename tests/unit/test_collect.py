"""Collecting and loading: features equal those of the series; a damaged file is named."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from replication.base.errors import InputError
from replication.base.files import atomic, write_text
from replication.base.table import write_parquet
from replication.metrics.collect import coarser, collect_study
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.study.claim_model import Quantity
from replication.verdicts.sample import Coverage

from tests.unit.conftest import claim, sampled, study_document

TCP = {"experiment": "sweep", "where": {"variant": "reno"}}
WANTED = [
    TCP | {"metric": "cwnd_peak_segments", "aggregate": "maximum"},
    TCP | {"metric": "throughput_bps", "window_s": [2, 6], "flows": ["tcp2"]},
    TCP | {"metric": "rtt_s", "aggregate": "sum"},
    TCP | {"metric": "queue_peak_packets"},
    TCP | {"metric": "jain_mean", "flows": ["tcp2", "tcp1"]},
    TCP | {"metric": "jain_since_start_mean", "window_s": [3, 8]},
]
TESTS = [{"kind": "value", "of": wanted, "expect": {"at_least": 0}} for wanted in WANTED]
CLAIMS = [claim(test, f"c{number}") for number, test in enumerate(TESTS)]


@pytest.fixture
def collected(world):
    def series(flow, replicate, **_):
        if flow == "bottleneck:ab":
            numbers = {"queue_packets": [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0], "drops": 1.0}
        else:
            numbers = {"delay_s": 0.1, "throughput_bps": [1e5 * (i % 3 + 1) for i in range(8)]}
        return sampled([replicate + len(flow) + second for second in range(8)], **numbers)

    study = world.study(claims=CLAIMS)
    results = world.results(study, series=series, engines=("ns3", "ns2"))
    collect_study(study, world.folder)
    return results, Results.load(world.folder, study.id)


@pytest.mark.parametrize("wanted", WANTED, ids=lambda wanted: wanted["metric"])
def test_a_collected_feature_equals_the_one_computed_from_the_series(collected, wanted):
    from_series, from_features = (
        quantity(results, Quantity.model_validate(wanted)) for results in collected
    )
    assert from_series["value"].notna().all() and len(from_series) == 2 * 9
    pd.testing.assert_frame_equal(from_features, from_series, check_exact=True)


def test_only_first_replicates_keep_series_and_delays_are_kept_only_if_drawn(collected):
    _, results = collected
    series = pd.read_parquet(results.series_path)
    first = results.design[results.design["replicate"] == 0]
    assert set(series["scenario"]) == set(first["scenario"])
    assert series["delay_s"].isna().all() and series["queue_packets"].notna().any()


def test_a_study_that_draws_delays_keeps_the_series_of_every_replicate(world):
    document = study_document()
    document["experiments"][0]["type"] = "queuing"
    study = world.study(experiments=document["experiments"])
    results = world.results(study, series=lambda **_: sampled([1, 2], delay_s=0.1))
    collect_study(study, world.folder)
    series = pd.read_parquet(Results.load(world.folder, study.id).series_path)
    assert set(series["scenario"]) == set(results.design["scenario"])
    assert series.loc[series["flow"].notna(), "delay_s"].eq(0.1).all()


def test_collected_results_do_not_depend_on_the_split_into_batches(collected, world):
    _, results = collected
    folder, batches = results.series_path.parent, world.folder / "batches"
    names = ("flows", "features", "series")
    before = [(folder / f"{name}.parquet").read_bytes() for name in names]
    path = world.folder / "design/synthetic.csv"
    design = pd.read_csv(path, dtype=str).sort_values("engine")
    design["batch"] = [f"b{number % 3}" for number in range(len(design))]
    write_text(path, design.to_csv(index=False))
    for name in ("flows", "series"):
        table = pd.read_parquet(batches / f"synthetic-batch.{name}.parquet")
        of = table.merge(design, on=["scenario", "engine"])["batch"]
        for batch, rows in table.groupby(of):
            part = pa.Table.from_pandas(rows, preserve_index=False)
            write_parquet(part, batches / f"{batch}.{name}.parquet")
    collect_study(world.study(claims=CLAIMS), world.folder)
    assert [(folder / f"{name}.parquet").read_bytes() for name in names] == before


# -- equal runs -----------------------------------------------------------------------------------

OF_ONE_RUN = {
    "kind": "value",
    "of": TCP | {"metric": "rtt_s"},
    "expect": {"published": 1.0, "factor": 1.5},
}


@pytest.mark.parametrize(("differ_at_s", "distinct"), [(9, 1), (3, 4)])
def test_equal_replicates_are_recognised_up_to_the_end_of_the_shortest(
    world, differ_at_s, distinct
):
    document = study_document()
    duration = {"value": 8.0, "assumed": {"reason": "r", "source": "s", "range": [8.0, 10.0]}}
    duration["assumed"]["varies"] = [8.0, 8.9]
    document["parameters"]["duration_s"] = duration
    study = world.study(claims=[claim(OF_ONE_RUN)], parameters=document["parameters"])

    def series(replicate, **_):
        windows = [10.0] * 10
        windows[differ_at_s - 1] += replicate
        return sampled(windows, rtt_s=1.0 + replicate / 100, retransmissions=0.0)

    world.results(study, series=series, replicates=4)
    collect_study(study, world.folder)
    results = Results.load(world.folder, study.id)
    assert len({document["duration_s"] for document in results.scenarios.values()}) > 1
    wanted = Quantity.model_validate(TCP | {"metric": "rtt_s"})
    assert len(set(Coverage(study, results, "ns3").fingerprints([wanted]))) == distinct


# -- loading --------------------------------------------------------------------------------------


@pytest.fixture
def loaded(world):
    world.results(world.study(), replicates=2, series=lambda **_: sampled([1, 2, 3]))
    return world.folder


def load(folder):
    return Results.load(folder, "synthetic")


def test_a_feature_that_was_not_collected_is_named_with_the_remedy(world, loaded):
    collect_study(world.study(), loaded)
    wanted = Quantity(experiment="sweep", metric="window_reductions")
    assert len(quantity(load(loaded), wanted)) == 18
    with pytest.raises(InputError, match=r"cwnd_peak_segments.*make report"):
        quantity(load(loaded), wanted.model_copy(update={"metric": "cwnd_peak_segments"}))


def test_a_duplicate_flow_or_an_unknown_scenario_is_refused(loaded):
    path = loaded / "results/synthetic/flows.parquet"
    table = pd.read_parquet(path)
    with atomic(path) as target:
        pd.concat([table, table.iloc[[3]]]).to_parquet(target)
    with pytest.raises(InputError, match="flow tcp2"):
        load(loaded)
    path = loaded / "design/scenarios/synthetic.json"
    scenarios = json.loads(path.read_text())
    gone, _ = scenarios.popitem()
    write_text(path, json.dumps(scenarios))
    with pytest.raises(InputError, match=gone):
        load(loaded)


def test_long_series_are_stored_with_a_longer_interval():
    count = 1_201
    names = {"scenario": "s", "engine": "ns3", "flow": "a", "link": None}
    long = pd.DataFrame({"time_s": 0.5 * np.arange(1, count + 1)}).assign(**names)
    long["throughput_bps"] = np.arange(count, dtype=float)
    long["cwnd_bytes"], long["delay_s"] = long["throughput_bps"], np.nan
    long["drops"] = long["retransmissions"] = 1.0
    short = long.iloc[:1_000].assign(flow="b")
    stored = coarser(pd.concat([long, short]))
    assert len(stored[stored["flow"] == "b"]) == 1_000
    joined = stored[stored["flow"] == "a"]
    assert list(joined["time_s"].iloc[[0, 1, -2, -1]]) == [3.0, 6.0, 600.0, 600.5]
    assert list(joined["throughput_bps"].iloc[[0, 1, -1]]) == [2.5, 8.5, 1200.0]
    assert list(joined["cwnd_bytes"].iloc[[0, 1, -1]]) == [5.0, 11.0, 1200.0]
    assert joined["drops"].sum() == joined["retransmissions"].sum() == count
    assert len(joined) == 201 and joined["delay_s"].isna().all()
