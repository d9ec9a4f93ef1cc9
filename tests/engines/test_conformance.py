"""Every engine shows what conformance.yaml expects, or deviates for a cause named there."""

import itertools
import math
from functools import cache

import pytest
from measurements.conformance import (
    DOCUMENT,
    RECOVERY,
    TABLE,
    check_rows,
    known_deviation,
    recovery_rows,
    write,
)
from replication.base.table import CONFORMANCE_COLUMNS, read_rows
from replication.engines.catalogue import ENGINES

CHECKS = {check["id"]: check for check in DOCUMENT["checks"]}
RECOVERIES = [
    ".".join(names)
    for names in itertools.product(RECOVERY["variants"], RECOVERY["losses"], RECOVERY["quantities"])
]
#: Checks that ns-2 cannot run; any other refusal means a lost check.
REFUSED = {(check, "ns2") for check in ("codel_wait", "two_flows_codel_jain", "prr_depth")}
REFUSED |= {("ns3_prr_depth", "ns2"), ("ns3_prr_depth", "linux")}
REFUSED |= {("probe_rtt_interval", "ns2"), ("probe_rtt_duration", "ns2")}


@pytest.fixture(scope="session")
def measured(request):
    """Return a function that gives the rows of an engine, or of the recoveries, by check."""

    @cache
    def rows(part):
        engines = [part] if part in ENGINES else [RECOVERY["subject"], RECOVERY["reference"]]
        benches = [request.getfixturevalue(engine) for engine in engines]
        rows = check_rows(*benches) if part in ENGINES else recovery_rows(*benches)
        return {row["check"]: row for row in rows}

    return rows


def read(path):
    """Return the rows of a table by engine and check, as text."""
    rows = read_rows(path, CONFORMANCE_COLUMNS)
    return {(row["engine"], row["check"]): row for row in rows}


def judge(row):
    """Require the documented outcome: as expected, or a deviation with a named cause."""
    values = f"{row['value']:g}, expected {row['expected']:g} ({row['low']:g} to {row['high']:g})"
    if known_deviation(row["check"], row["engine"]):
        assert row["holds"] == "false", f"a known deviation that is gone: {values}"
    else:
        assert row["holds"] == "true", f"a deviation without a name: {values}"


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_each_engine_passes_its_checks_of_conformance(measured, engine, check):
    row = measured(engine)[check]
    if (check, engine) in REFUSED:
        assert row["holds"] == "refused"
        assert f"{engine} has no" in row["note"]
    else:
        judge(row)


@pytest.mark.parametrize("check", RECOVERIES)
def test_our_variants_recover_as_those_of_the_reference(measured, check):
    judge(measured("recovery")[check])


@pytest.mark.parametrize("part", [*ENGINES, "recovery"])
def test_the_committed_table_of_conformance_matches_the_engines(measured, tmp_path, part):
    rows = list(measured(part).values())
    write(rows, tmp_path / "now.csv")
    now, kept = read(tmp_path / "now.csv"), read(TABLE)
    assert set(now) <= set(kept)
    # A different compiler builds a different program from the same sources, with the same results.
    builds = [row.pop("version") for row in (*now.values(), *kept.values())]
    assert all(builds) and now == {key: kept[key] for key in now}


def test_the_committed_table_has_every_check_and_nothing_else():
    rows = set(itertools.product(ENGINES, CHECKS))
    assert set(read(TABLE)) == rows | {(RECOVERY["subject"], check) for check in RECOVERIES}


PACKET_BITS, ACK_BITS = 8 * 1040, 8 * 40


@pytest.mark.parametrize(
    ("check", "law"),
    [
        ("empty_link_rtt", 0.06 + (PACKET_BITS + ACK_BITS) / 1e7),
        ("empty_link_throughput", 10 * PACKET_BITS / (0.06 + (PACKET_BITS + ACK_BITS) / 1e7)),
        ("empty_link_delay", 0.03 + PACKET_BITS / 1e7),
        ("sawtooth_period", 3 / 8 * 61.5**2 * PACKET_BITS / 4e6),
        ("mathis_002", math.sqrt(1.5)),
        ("cbr_drops", 1 - 2e6 / 4e6),
        ("cbr_drops_little", 1 - 2e6 / 2.6e6),
        ("red_drops", 1 - 2 / 2.1),
        # Kelly 2003: an increase of 0.01 an acknowledgement, a decrease of one eighth.
        ("scalable_response", 0.01 * 8 / 0.001),
        # RFC 3649, section 5, rounded to a segment.
        ("highspeed_response", round(0.12 / 0.001**0.835)),
        ("highspeed_response_rare", round(0.12 / 0.0002**0.835)),
        # One in n = 21 is dropped; uniform over 1 to 1/p_b has the mean (1 + 1/p_b) / 2.
        ("red_average", 10 + 20 / (2 * 21 - 1) / 0.1),
    ],
)
def test_expectations_follow_from_their_formulas(check, law):
    assert CHECKS[check]["bounds"][1] == pytest.approx(law, rel=2e-3)


@pytest.mark.parametrize(
    ("check", "part", "key", "value"),
    [
        ("empty_link_rtt", "link", "delay_s", 0.0301),
        ("cbr_drops", "link", "rate_bps", 1.97e6),
        ("slow_start", "t", "delayed_ack_segments", 2),
        ("highspeed_response_rare", "t", "congestion_control", "linuxreno"),
        ("probe_rtt_duration", "t", "congestion_control", "cubic"),
    ],
)
def test_a_check_fails_if_a_different_algorithm_or_setting_runs(
    ns3, monkeypatch, check, part, key, value
):
    (name,) = CHECKS[check]["scenarios"]
    canonical = DOCUMENT["scenarios"][name]
    monkeypatch.setitem(canonical["flows"].get(part, canonical["link"]), key, value)
    assert [row["holds"] for row in check_rows(ns3, [check])] == ["false"]


def test_without_jitter_phase_effects_violate_the_check_of_fairness(ns2, monkeypatch):
    # Floyd and Jacobson 1992: without it, arrivals keep in step with the queue's departures.
    for flow in DOCUMENT["scenarios"]["unequal_reno"]["flows"].values():
        monkeypatch.setitem(flow["access"], "jitter_s", 0)
    assert [row["holds"] for row in check_rows(ns2, ["rtt_fairness"])] == ["false"]
