"""Every large difference between engines has an entry, and an old measurement does not stay."""

import itertools
import json
import math
import warnings

import pytest
from replication.base.errors import InputError
from replication.base.files import read_json
from replication.base.table import DIFFERENCE_COLUMNS, DIFFERENCES, grouped, read_rows
from replication.compare.agreement import EngineDifference, load_differences
from replication.compare.flow_differences import (
    KEY,
    LARGEST,
    LAW,
    Outdated,
    Pair,
    compare_rows,
    current_generation,
    excess,
    explains,
    outdated,
    pairs,
)

from tests.unit.conftest import ROOT, missing_from


class OldMeasurement(UserWarning):
    """Rows that an engine's present generation may not give any more."""


def released_generation(root, engine):
    """Return the generation that the release was made with; empty without one."""
    path = root / "data/release/provenance.json"
    engines = read_json(path).get("engines", {}) if path.is_file() else {}
    return engines.get(engine, {}).get("fingerprint", "").partition("-")[0]


def measured(engine, value, *, metric="throughput_bps", law="", generation="new"):
    named = {"variant": "cubic", "condition": "loss 1 %, 10 ms", "metric": metric}
    rest = {"difference": "", "entry": "", "generation": generation, "scenario": "id"}
    return named | {"engine": engine, "value": str(value), "law": law} | rest


def entry(name="why", found_in=("cubic, loss 1 %*",), **engines):
    return EngineDifference(
        id=name,
        title=name,
        engines=engines or {"ns3": "a", "linux": "b"},
        shows_in=["throughput_bps"],
        sources=["a manual"],
        found_in=list(found_in),
    )


def test_every_large_difference_of_the_table_has_an_entry_that_concerns_it():
    rows = read_rows(ROOT / DIFFERENCES, DIFFERENCE_COLUMNS)
    known = load_differences(ROOT).differences
    kept, nameless = [dict(row) for row in rows], []
    for group in grouped(rows, *KEY).values():
        nameless += compare_rows(group, known)
    assert nameless == []
    assert rows == kept, "run workflow/measurements/differences.py, which compares the rows again"
    named = set(itertools.chain(*(row["entry"].split("; ") for row in rows)))
    listed = {difference.id for difference in known if difference.found_in}
    assert named - {""} == listed, "an entry causes no row"
    by_id = load_differences(ROOT).by_id
    for row in rows:
        control = {"sack": "newreno"}.get(row["variant"], row["variant"])
        for name in filter(None, row["entry"].split("; ")):
            controls = by_id[name].concerns.congestion_controls
            assert not controls or control in controls, (row, name)


def test_rows_of_an_old_engine_version_do_not_outlive_a_release():
    for old in outdated(ROOT, read_rows(ROOT / DIFFERENCES, DIFFERENCE_COLUMNS)):
        # The release's results and the table are of one generation, unless the engine is newer.
        assert released_generation(ROOT, old.engine) != old.current, str(old)
        warnings.warn(str(old), OldMeasurement, stacklevel=1)


@pytest.mark.parametrize(
    ("metric", "value", "other", "expected"),
    [
        ("throughput_bps", 2e6, 3e6, 0.5),
        ("throughput_bps", 0, 3e6, math.inf),
        # Three standard errors of the difference of 9 and 20 are 16.
        ("retransmissions", 9, 20, 0),
        ("retransmissions", 0, 9, 0),
        ("retransmissions", 0, 10, 9),
        ("retransmissions", 90, 200, 200 / 90 - 1),
    ],
)
def test_the_excess_is_relative_and_allows_counts_their_standard_error(
    metric, value, other, expected
):
    assert excess(metric, value, other) == pytest.approx(expected)
    assert excess(metric, other, value) == pytest.approx(expected)


def test_engines_are_compared_with_each_other_and_with_theory():
    rows = [measured("ns3", 4, law="2"), measured("ns2", 2, law="2"), measured("linux", 2)]
    assert {pair.sides: pair.excess for pair in pairs(rows)} == {
        ("ns3", "ns2"): 1,
        ("ns3", "linux"): 1,
        ("ns3", LAW): 1,
        ("ns2", "linux"): 0,
        ("ns2", LAW): 0,
    }


def test_an_entry_that_says_the_same_of_both_engines_explains_nothing():
    pair = Pair(("ns3", "linux"), 1.0)
    row = measured("ns3", 1)
    assert explains(entry(), row, pair)
    assert not explains(entry(ns2="x", ns3="same", linux="same"), row, pair)
    assert not explains(entry(found_in=["cubic, loss 5 %*"]), row, pair)
    assert not explains(entry(ns2="a", linux="b"), row, Pair(("ns3", LAW), 1.0))


def test_a_difference_without_an_entry_is_named():
    rows = [measured("ns3", 4), measured("linux", 2), measured("ns2", 2.1)]
    nameless = compare_rows(rows, [entry()])
    assert nameless == []
    assert [row["entry"] for row in rows] == ["why", "why", "why"]
    (left,) = compare_rows(rows, [entry(ns3="same", linux="same", ns2="other")])
    key = ("cubic", "loss 1 %, 10 ms", "throughput_bps")
    assert not missing_from(left, *key, "ns3", "linux", "100 %")
    assert [row["difference"] for row in rows] == ["1", "1", "0.904762"]
    assert all(float(row["difference"]) > LARGEST for row in rows)


def generations(root, current, released):
    folder = root / "workflow/engines/generations"
    folder.mkdir(parents=True)
    listed = {"digest": current, "added": "2026-11-28", "reason": "first"}
    whole = {"version": "1", "canonical": {}, "runs": {}, "unexecuted": "0", "sources": [listed]}
    (folder / "ns3.yaml").write_text(json.dumps(whole))
    release = root / "data/release"
    release.mkdir(parents=True)
    engines = {"ns3": {"fingerprint": f"{released}-3.44", "version": "1"}}
    (release / "provenance.json").write_text(json.dumps({"engines": engines}))


def test_rows_of_an_old_engine_version_are_counted_by_engine(tmp_path):
    generations(tmp_path, "aaaaaaaa", "bbbbbbbb")
    rows = [measured("ns3", 1, generation=name) for name in ("aaaaaaaa", "bbbbbbbb", "")]
    assert current_generation(tmp_path, "ns3") == "aaaaaaaa"
    assert released_generation(tmp_path, "ns3") == "bbbbbbbb"
    (old,) = outdated(tmp_path, rows)
    assert old == Outdated("ns3", 2, ("bbbbbbbb", "unknown"), "aaaaaaaa")
    assert not missing_from(old, "2 rows", "ns3", "measurements.differences")
    assert outdated(tmp_path, rows[:1]) == []


def test_a_metric_unknown_to_the_table_is_refused():
    with pytest.raises(InputError, match="metric"):
        excess("speed", 1, 2)
