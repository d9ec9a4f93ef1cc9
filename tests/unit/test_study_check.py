"""A study and its published numbers are checked completely before anything runs."""

import json
import re
from decimal import Decimal

import pandas as pd
import pytest
from replication.base.errors import InputError
from replication.base.files import read_yaml
from replication.base.position import read_model
from replication.design.config import study_ids
from replication.design.study_check import check_study
from replication.study.published import read_published
from replication.study.study import Study

from tests.unit.conftest import ROOT, study_document, tolerance

HEADER = "table,row,column,unit,value,printed,place\n"
ROWS = (
    '1,slow,throughput,bit/s,800000,0.80,"Table 1"\n',
    "1,mid,throughput,bit/s,900000,0.90,Table 1\n",
    "1,fast,throughput,bit/s,990000,0.99,Table 1\n",
)


def write(folder, *rows, header=HEADER):
    path = folder / "numbers.csv"
    path.write_bytes("".join([header, *rows]).encode())
    return path


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((*ROWS[:2], '1,fast,throughput,bit/s,990000,0.99,"Table 1\n'), "line 4"),
        ((ROWS[0].replace(' 1"', ""), *ROWS[1:], '"\n'), "line 2: place: contains"),
        ((ROWS[0].replace("0.80", ""),), "line 2: printed: '' is empty"),
        ((ROWS[0].replace("bit/s", "Mbit/s"),), "line 2: unit: 'Mbit/s' is none of"),
        ((ROWS[0].replace("0.80", "0.81"),), "line 2: .*0.81"),
        ((ROWS[0], ROWS[1].replace("900000", "9000000")), "line 3: .*line 2"),
        ((ROWS[0], ROWS[0]), "line 3: .*twice.*line 2"),
    ],
)
def test_an_invalid_number_is_refused_by_its_line(tmp_path, rows, message):
    path = write(tmp_path, *rows)
    with pytest.raises(InputError, match=message) as caught:
        read_published(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[:2], "table 1: row fast, column throughput"),
        (
            (*ROWS, ROWS[0].replace("1,", "l,", 1)),
            "line 5: table l.*table: 'l'",
        ),
        ((*ROWS, ROWS[0].replace("slow", "slower")), "line 5: .*row: 'slower'"),
    ],
)
def test_a_missing_or_surplus_number_is_refused_by_its_row(world, tmp_path, rows, message):
    # Prose and set-up need no table.
    prose = [f"{name},router,rate,bit/s,1000000,1,Section 2\n" for name in ("text", "setup")]
    assert len(check_study(world.table(), write(tmp_path, *ROWS, *prose))) == 3
    with pytest.raises(InputError, match=message):
        check_study(world.table(), write(tmp_path, *rows))


def test_an_empty_cell_of_the_paper_is_listed_as_not_printed(world, tmp_path):
    cell = {"metric": "throughput_bps", "aggregate": "sum", "tolerance": tolerance(0.1)}
    both = {"throughput": cell, "other": cell}
    other = ROWS[0].replace("throughput", "other")
    absent = {"mid": ["other"], "fast": ["other"]}
    check_study(world.table(both, not_printed=absent), write(tmp_path, *ROWS, other))
    for wrong, message in (
        ({"mid": ["other"]}, "row fast, column other"),
        (absent | {"none": ["other"]}, "not_printed: row: 'none'"),
        (absent | {"slow": ["other"]}, "slow.* other"),
    ):
        with pytest.raises(InputError, match=message):
            check_study(world.table(both, not_printed=wrong), write(tmp_path, *ROWS, other))


def test_only_a_printed_number_is_listed_as_not_comparable(world, tmp_path):
    study = world.table(not_comparable={"slow": {"throughput": "The sender's count."}})
    slow, mid, _ = check_study(study, write(tmp_path, *ROWS))
    assert (slow.not_comparable, mid.not_comparable) == ("The sender's count.", "")
    for wrong in ({"none": {"throughput": "Why."}}, {"slow": {"speed": "Why."}}):
        with pytest.raises(InputError, match=r"table 1: not_comparable"):
            check_study(world.table(not_comparable=wrong), write(tmp_path, *ROWS))


def value(**quantity):
    of = {"experiment": "sweep", "metric": "throughput_bps", **quantity}
    return {"kind": "value", "of": of, "expect": {"at_least": 1}}


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        ({"flows": {"start_order": 3}}, "claim c1: .*flows: start_order.* 3 "),
        ({"flows": ["tcp3"]}, "claim c1: .*flows: 'tcp3'.*tcp1, tcp2"),
        ({"window_s": [5.0, 10.5]}, r"claim c1: .*window_s: .*10\.5 s.* 10 s"),
    ],
)
def test_a_claim_about_a_quantity_of_no_run_is_refused(world, tmp_path, quantity, message):
    with pytest.raises(InputError, match=message):
        check_study(world.claim(value(**quantity)), write(tmp_path))
    cell = {"metric": "throughput_bps", "tolerance": tolerance(0.1), **quantity}
    with pytest.raises(InputError, match=message.replace("claim c1", "table 1, row slow.*")):
        check_study(world.table({"throughput": cell}), write(tmp_path, *ROWS))


def test_a_completion_time_needs_a_transfer(world, tmp_path):
    document = study_document()
    claim = value(metric="completion_time_s")
    with pytest.raises(InputError, match=r"completion_time_s .*stop_after_bytes"):
        check_study(world.claim(claim, experiments=document["experiments"]), write(tmp_path))
    document["experiments"][0]["flows"][0]["stop_after_bytes"] = 9600
    check_study(world.claim(claim, experiments=document["experiments"]), write(tmp_path))


def test_a_metric_of_queues_needs_a_monitor(world, tmp_path):
    document = study_document()
    document["experiments"][0]["topology"]["monitors"] = []
    claim = value(metric="queue_mean_packets")
    with pytest.raises(InputError, match=r"queue_mean_packets .*topology"):
        check_study(world.claim(claim, experiments=document["experiments"]), write(tmp_path))


def test_a_study_with_nothing_to_judge_is_refused(world, tmp_path):
    with pytest.raises(InputError, match="tables nor claims"):
        check_study(world.study(), write(tmp_path))


# -- files ----------------------------------------------------------------------------------------


def read(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return read_yaml(path)


@pytest.mark.parametrize("text", ["yes", "010", "0x10", "1:30", "1_000", ".inf", "2017-08-01"])
def test_a_yaml_value_that_json_lacks_is_text(tmp_path, text):
    assert read(tmp_path, f"x: {text}\n") == {"x": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: key 'a'"),
        ("a: !!python/name:os.system x", "line 1: "),
        ("a: 1\n2: x", "line 2: key '2'"),
    ],
)
def test_a_file_that_is_no_document_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert "x.yaml, line " in str(caught.value) and str(caught.value).isprintable()


def test_an_invalid_field_is_refused_by_its_line(tmp_path):
    path = tmp_path / "x.yaml"
    text = json.dumps(study_document(), indent=1).replace('"mid",', '"Mid One",')
    line = text[: text.index("Mid One")].count("\n") + 1
    path.write_text(text)
    with pytest.raises(
        InputError, match=rf"x\.yaml, line {line}: experiments\.sweep\.factors\."
    ) as got:
        read_model(path, Study)
    assert "(got 'Mid One')" in str(got.value)


# -- the published numbers ------------------------------------------------------------------------

NUMBER_WORDS = {"single": "1", "two": "2", "three": "3", "four": "4"}
SUFFIX_FACTORS = {"%": "0.01", "ms": "1e-3", "μs": "1e-6", "MB": "1e6", "Mbps": "1e6"}
SUFFIX_FACTORS |= dict.fromkeys(("s", "sec", "seconds"), "1")
SUFFIX_FACTORS |= dict.fromkeys(("kbps", "Kbps"), "1e3")
#: Cells printed without a unit: the factor that their `place` states.
COLUMN_FACTORS = {
    ("saxena", "newreno"): "1e6",
    ("saxena", "westwood"): "1e6",
    ("saxena", "highspeed"): "1e6",
    ("nishitha", "delay"): "1e-3",
    ("nishitha", "throughput"): "1e3",
    ("liang_shen", "lower_loss_newreno_cbr_rate"): "1e6",
}
#: All numbers of rebbr are in Mbit/s.
STUDY_FACTORS = {"rebbr": "1e6"}


def printed(study):
    path = ROOT / "data" / "published" / f"{study}.csv"
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def printed_value(study, column, printed):
    """Number in the printed text, in the unit that the text or the column's header implies."""
    text = printed.removeprefix("derived:")
    for word, digit in NUMBER_WORDS.items():
        text = re.sub(rf"^{word}$", digit, text, flags=re.IGNORECASE)
    match = re.search(r"(\d+(?:\.\d+)?)\s*([%\wμ]*)$", text)
    assert match, f"no number in {printed!r}"
    number, suffix = match.groups()
    usual = COLUMN_FACTORS.get((study, column), STUDY_FACTORS.get(study, "1"))
    factor = SUFFIX_FACTORS[suffix] if suffix else usual
    return Decimal(number) * Decimal(factor)


@pytest.mark.parametrize("study", study_ids(ROOT))
def test_each_published_value_is_the_printed_number_in_si_units(study):
    for row in printed(study).to_dict("records"):
        assert Decimal(row["value"]) == printed_value(study, row["column"], row["printed"]), row


@pytest.mark.parametrize(
    ("trace", "text_row", "after_the_test"),
    [
        ("trace:reno", "trio_reno", 0),
        ("trace:cubic", "trio_cubic", 1),
        ("trace:vegas-itr-2", "trio_vegas", 0),
    ],
)
def test_traces_confirm_the_counts_in_the_text(trace, text_row, after_the_test):
    # CUBIC's trace lasts longer than iperf3's 60 s and has one more retransmission.
    rows = printed("kapadia")
    counts = rows[rows["column"] == "retransmissions"].astype({"value": float})
    total = counts[counts["table"] == trace]["value"].sum()
    stated = counts[(counts["table"] == "text") & (counts["row"] == text_row)]["value"].item()
    assert total == stated + after_the_test
