"""Conformance: the document, the quantities, the judging and the section of the report."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from replication.compare.conformance import (
    Runner,
    judge,
    merge_conformance,
    run_checks,
    write_frame,
)
from replication.compare.conformance_model import Conformance, load_conformance, recovery_check
from replication.compare.conformance_quantity import QUANTITIES, ObservedRun
from replication.compare.conformance_recovery import UNITS, compare, recovery_numbers, windows
from replication.engines.catalogue import ENGINES
from replication.report.pages.conformance import conformance_view
from replication.report.parts.page import plain_environment
from replication.report.parts.source import Source
from replication.run.process import Limits
from replication.run.runtime import native
from replication.study.errors import InputError
from replication.study.storage.table import CONFORMANCE_COLUMNS, RECOVERY_COLUMNS

ROOT = Path(__file__).parents[2]
DOCUMENT = load_conformance(ROOT)
CHECKS = {check.id: check for check in DOCUMENT.checks}
PACKET_BITS, ACK_BITS = 8 * 1040, 8 * 40


def runner(engine="ns3"):
    return Runner(ENGINES[engine], "1+f", native(Path("program"), Limits(2**30, 10.0)), Path())


def observed(name, series=None, engine="ns3", **totals):
    scenario = DOCUMENT.scenario(name, engine)
    flows = pd.DataFrame([totals], index=[scenario.flows[0].id])
    columns = ("cwnd_bytes", "ssthresh_bytes", "rtt_s", "throughput_bps", "queue_packets")
    empty = dict.fromkeys(columns, np.nan) | {"time_s": 0.0, "flow": "", "link": ""}
    rows = [empty | row for row in series or []]
    return ObservedRun(scenario, flows, pd.DataFrame(rows, columns=list(empty)))


def changed(**changes):
    document = yaml.safe_load((ROOT / "configs" / "conformance.yaml").read_text())
    return document | changes


@pytest.mark.parametrize(
    ("check", "law"),
    [
        ("empty_link_rtt", 0.06 + (PACKET_BITS + ACK_BITS) / 1e7),
        ("empty_link_throughput", 10 * PACKET_BITS / (0.06 + (PACKET_BITS + ACK_BITS) / 1e7)),
        ("empty_link_delay", 0.03 + PACKET_BITS / 1e7),
        ("sawtooth_period", 3 / 8 * 61.5**2 * PACKET_BITS / 4e6),
        ("mathis_002", math.sqrt(1.5)),
        ("cbr_drops", 1 - 2e6 / 4e6),
        ("red_drops", 1 - 2 / 2.1),
        # One in n = 21 is dropped; uniform over 1 to 1/p_b has the mean (1 + 1/p_b) / 2.
        ("red_average", 10 + 20 / (2 * 21 - 1) / 0.1),
    ],
)
def test_expectations_follow_from_their_formulas(check, law):
    assert CHECKS[check].expected == pytest.approx(law, rel=2e-3)


def test_every_engine_has_a_variant_and_every_quantity_a_check():
    assert set(DOCUMENT.engines) >= set(ENGINES)
    assert {check.quantity for check in DOCUMENT.checks} == set(QUANTITIES)


def test_engines_share_a_scenario_but_for_what_they_lack():
    both = [DOCUMENT.scenario("sawtooth", engine).model_dump() for engine in ("ns3", "linux")]
    flows = [scenario.pop("flows")[0] for scenario in both]
    assert both[0] == both[1]
    different = {key for key in flows[0] if flows[0][key] != flows[1][key]}
    assert different == {"congestion_control", "recovery", "clock_granularity_s"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"surprise": 1}, ["surprise"]),
        ({"seed": 0}, ["seed"]),
        ({"tcp": {}}, ["scenario empty_link on ns3", "congestion_control"]),
        ({"tcp": {"congestion_control": "quic"}}, ["scenario empty_link", "quic"]),
        ({"scenarios": {}}, ["scenarios"]),
        ({"known_deviations": [{"checks": ["x"], "engine": "ns3", "cause": "c", "evidence": "e"}]},
         ["known_deviations", "'x'"]),
        ({"known_deviations": [{"checks": ["conservation"], "engine": "ns3", "cause": "c"}]},
         ["evidence"]),
    ],
)  # fmt: skip
def test_a_wrong_document_is_refused_by_name(tmp_path, changes, words):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "conformance.yaml").write_text(json.dumps(changed(**changes)))
    with pytest.raises(InputError) as error:
        load_conformance(tmp_path)
    for word in ["conformance.yaml", *words]:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scenarios": ["nowhere"]}, ["empty_link_throughput", "'nowhere'"]),
        ({"quantity": "speed"}, ["'speed'", "throughput_bps"]),
        ({"expected": 1.0}, ["low", "expected"]),
        ({"source": ""}, ["source"]),
        ({"id": "slow_start"}, ["duplicate check"]),
    ],
)
def test_a_wrong_check_is_refused_by_name(tmp_path, change, words):
    document = changed()
    document["checks"][0] |= change
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "conformance.yaml").write_text(json.dumps(document))
    with pytest.raises(InputError) as error:
        load_conformance(tmp_path)
    for word in words:
        assert word in str(error.value)


def measured(check, *runs):
    return QUANTITIES[CHECKS[check].quantity].measure(runs, CHECKS[check].after_s)


def window(values, step_s, **columns):
    return [
        {"time_s": (n + 1) * step_s, "flow": "t", "cwnd_bytes": 1000 * v} | columns
        for n, v in enumerate(values)
    ]


def test_growth_is_the_factor_of_a_round_trip():
    for factor in (2, 1.5):
        run = observed("slow_start", window([factor**n for n in range(8)], 0.2, rtt_s=0.2))
        assert measured("slow_start", run) == pytest.approx(factor)


def test_slope_period_and_depth_of_a_sawtooth():
    teeth = [32, *range(16, 33), *range(16, 33), *range(16, 33)]
    run = observed("random_loss_002", window(teeth, 0.1))
    assert measured("aimd_slope", run) == pytest.approx(1, rel=1e-3)
    run = observed("sawtooth", window(teeth, 0.05))
    assert measured("sawtooth_depth", run) == pytest.approx(0.5)
    assert measured("sawtooth_period", run) == pytest.approx(17 * 0.05)


def test_the_loss_laws():
    def at(name, probability, constant=1.2247, power=-0.5):
        segments = constant * probability**power
        rtt_s = observed(name).rtt_s
        return observed(name, goodput_bps=segments * 8000 / rtt_s, loss_rate=probability)

    assert measured("mathis_006", at("random_loss_006", 0.006)) == pytest.approx(1.2247)
    runs = [at(f"random_loss_{n}", p, power=-0.7) for n, p in (("002", 0.002), ("018", 0.018))]
    assert measured("mathis_exponent", *runs) == pytest.approx(-0.7)


def test_shares_queue_and_packets():
    rates = [
        {"time_s": t, "flow": flow, "throughput_bps": rate}
        for t in (1.0, 30.0)
        for flow, rate in (("first", 4e6 if t < 25 else 3e6), ("second", 1e6))
    ]
    assert measured("two_flows_jain", observed("two_flows", rates)) == pytest.approx(0.8)
    queue = [{"time_s": t, "queue_packets": q} for t, q in ((1.0, 100.0), (20.0, 12.0))]
    assert measured("red_average", observed("red_overload", queue)) == 12
    assert measured("codel_wait", observed("codel", queue)) == pytest.approx(12 * PACKET_BITS / 1e7)
    counts = {"packets_sent": 10, "packets_received": 7, "packets_dropped": 2}
    whole = observed("sawtooth", **counts, packets_in_flight=1)
    broken = observed("sawtooth", **counts, packets_in_flight=3)
    assert measured("conservation", whole, whole) == 0
    assert measured("conservation", whole, broken) == 2


@pytest.mark.parametrize(
    ("delay", "within"), [(0.0308, "true"), (0.0309, "false"), (np.nan, "false")]
)
def test_a_perturbed_result_is_outside(delay, within):
    run = observed("empty_link", delay_mean_s=delay)
    row = judge(DOCUMENT, CHECKS["empty_link_delay"], runner(), [run])
    assert row["within"] == within
    assert row["deviation"] == pytest.approx(delay - 0.030832, nan_ok=True)


def test_a_perturbed_expectation_is_outside():
    check = CHECKS["empty_link_delay"]
    other = check.model_copy(update={"expected": 0.03, "low": 0.0299, "high": 0.0301})
    run = observed("empty_link", delay_mean_s=0.030832)
    assert judge(DOCUMENT, check, runner(), [run])["within"] == "true"
    assert judge(DOCUMENT, other, runner(), [run])["within"] == "false"


def test_an_engine_may_have_its_own_expectation():
    run = observed("slow_start_delayed", window([4 * 2**n for n in range(8)], 0.2, rtt_s=0.2))
    check = CHECKS["slow_start_delayed"]
    assert check.expectation("linux").expected == 2
    assert judge(DOCUMENT, check, runner(), [run])["within"] == "false"


def test_what_an_engine_lacks_is_refused_by_name():
    only = DOCUMENT.model_copy(update={"checks": [CHECKS["codel_wait"]]})
    (row,) = run_checks(only, runner("ns2")).to_dict("records")
    assert row["within"] == "refused"
    assert "codel" in row["note"]
    assert math.isnan(row["observed"])


def trace(*events):
    columns = ["time_s", "event", "sequence", "cwnd_bytes"]
    return pd.DataFrame(events, columns=columns)


RECOVERED = trace(
    (0.0, "send", 0, 4000),
    (0.0, "send", 1000, 4000),
    (0.0, "send", 2000, 4000),
    (0.1, "ack", 1000, 4000),
    (0.1, "retransmit", 1000, 2000),
    (0.15, "send", 3000, 2500),
    (0.2, "ack", 2000, 2000),
    (0.3, "ack", 3000, 2000),
    (0.4, "ack", 4000, 3000),
)


def test_numbers_of_a_recovery():
    numbers = recovery_numbers(RECOVERED, 5e5, 1000)
    assert numbers == {
        "first_retransmission_s": 0.1,
        "lowest_cwnd_segments": 2.0,
        "timeouts": 0.0,
        "recovery_time_s": pytest.approx(0.2),
        "goodput_bps": 5e5,
    }
    assert set(UNITS) == set(numbers)
    unharmed = recovery_numbers(RECOVERED[RECOVERED["event"] != "retransmit"], 5e5, 1000)
    assert math.isnan(unharmed["first_retransmission_s"])


def test_windows_keep_the_last_of_an_instant_and_leave_out_what_does_not_change():
    assert windows(RECOVERED, 1000).to_numpy().tolist() == [
        [0.0, 4.0], [0.1, 2.0], [0.15, 2.5], [0.2, 2.0], [0.4, 3.0]
    ]  # fmt: skip


def numbers(**values):
    rows = [
        ("reno", "two", engine, "1", quantity, value)
        for engine, pair in values.items()
        for quantity, value in pair.items()
    ]
    return pd.DataFrame(rows, columns=list(RECOVERY_COLUMNS))


def test_engines_are_compared_only_where_both_ran():
    alone = numbers(ns3={"timeouts": 0.0})
    assert compare(DOCUMENT, alone).empty
    both = numbers(
        ns3={"timeouts": 0.0, "goodput_bps": 1.04e6, "recovery_time_s": 0.31},
        ns2={"timeouts": 1.0, "goodput_bps": 1.0e6, "recovery_time_s": 0.2},
    )
    rows = compare(DOCUMENT, both).set_index("quantity")
    assert rows["within"].to_dict() == {
        "timeouts": "false", "goodput_bps": "true", "recovery_time_s": "false"
    }  # fmt: skip
    assert rows.loc["timeouts", "expected"] == 1
    assert rows.loc["timeouts", "check"] == recovery_check("reno", "two", "timeouts")


def written(folder, document=DOCUMENT):
    """Write what two engines would have shown, one check each way, and put it together."""
    base = dict.fromkeys(CONFORMANCE_COLUMNS, "") | {"engine_version": "1"}
    for engine in ("ns3", "ns2"):
        rows = []
        for check in DOCUMENT.checks:
            verdict = {"codel_wait": "refused", "red_drops": "false"}.get(check.id, "true")
            row = base | {"check": check.id, "engine": engine, "within": verdict}
            rows.append(row | {"note": "no <b>codel" if verdict == "refused" else ""})
        (folder / "conformance").mkdir(exist_ok=True)
        place = folder / "conformance" / engine
        write_frame(pd.DataFrame(rows), place.with_suffix(".csv"))
        shown = numbers(**{engine: {"timeouts": 0.0, "goodput_bps": 1e6}})
        write_frame(shown, place.with_suffix(".recovery.csv"))
        frame = windows(RECOVERED, 1000).assign(variant="reno", losses="two", engine=engine)
        write_frame(frame, place.with_suffix(".cwnd.csv"))
    merge_conformance(document, ["ns3", "ns2"], folder)


def test_the_section_shows_each_check_on_each_engine(tmp_path):
    source = Source(ROOT, tmp_path, [], [], [], {})
    assert conformance_view(source) is None
    written(tmp_path)
    view = conformance_view(source)
    assert [name for name, _, _ in view.engines] == ["ns3", "ns2"]
    words = {c.check.id: [word.word for _, word, _ in c.outcomes] for c in view.checks}
    assert words["codel_wait"] == ["refused", "refused"]
    assert words["red_drops"] == ["deviates", "deviates"]
    assert words["conservation"] == ["holds", "holds"]
    assert [d.checks for d in view.deviations] == [["red_drops"], ["red_drops"]]
    (case,) = view.recoveries
    assert [verdict.word for _, verdict in case.pairs] == ["holds", "holds"]
    assert {figure.id for figure in view.figures} == {"~conformance~reno~cwnd"}
    assert "reno" in view.figures[0].title.lower()


def test_a_known_deviation_is_named_with_its_cause(tmp_path):
    known = {"checks": ["red_drops"], "engine": "ns2", "cause": "the cause", "evidence": "proof"}
    document = Conformance.model_validate(changed(known_deviations=[known]))
    run = observed("red_overload", loss_rate=0.2)
    row = judge(document, CHECKS["red_drops"], runner("ns2"), [run])
    assert row["within"] == "false"
    assert "the cause" in row["note"] and "proof" in row["note"]
    assert judge(document, CHECKS["red_drops"], runner("ns3"), [run])["note"] == ""


def test_the_section_is_markup_and_its_texts_are_not(tmp_path):
    written(tmp_path)
    macro = plain_environment().get_template("conformance.html").module.section
    text = macro(conformance_view(Source(ROOT, tmp_path, [], [], [], {})))
    page = BeautifulSoup(str(text), "html.parser")
    assert not page.find("b")
    cells = page.select("#conformance-codel_wait td[data-engine]")
    assert [cell["data-verdict"] for cell in cells] == ["refused", "refused"]
    assert all("no <b>codel" in cell.get_text() for cell in cells)
    assert len(page.select("tr[id^=conformance-]")) == len(CHECKS)
    pairs = page.select("td[data-check]")
    assert [pair["data-check"] for pair in pairs] == ["reno.two.timeouts", "reno.two.goodput_bps"]
    # Every verdict has its symbol, not a colour alone.
    assert all(cell.find("use") for cell in cells + pairs)
