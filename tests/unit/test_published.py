"""The transcribed numbers: structure, counts, and agreement of each value with its printed text."""

from __future__ import annotations

import re
from decimal import Decimal

import pandas as pd
import pytest
from replication.design.config import study_ids

from tests.unit.conftest import ROOT

#: A study of published numbers alone needs no code, so these tests read whatever is there.
STUDIES = tuple(study_ids(ROOT))
PUBLISHED = ROOT / "data" / "published"

NUMBER_WORDS = {"single": "1", "two": "2", "three": "3", "four": "4"}
SUFFIX_FACTORS = {
    "%": "0.01",
    "kbps": "1e3",
    "Kbps": "1e3",
    "Mbps": "1e6",
    "MB": "1e6",
    "s": "1",
    "sec": "1",
    "seconds": "1",
    "ms": "1e-3",
    "μs": "1e-6",
}
#: Cells printed without a unit: the factor that their `place` states.
COLUMN_FACTORS = {
    ("nishitha", "delay"): "1e-3",
    ("nishitha", "throughput"): "1e3",
    ("saxena", "newreno"): "1e6",
    ("saxena", "westwood"): "1e6",
    ("saxena", "highspeed"): "1e6",
    ("liang_shen", "lower_loss_newreno_cbr_rate"): "1e6",
}


def read(study: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / f"{study}.csv", dtype=str, keep_default_na=False)


def printed_value(study: str, column: str, printed: str) -> Decimal:
    """Number in the printed text, in the unit that the text or the column's header implies."""
    text = printed.removeprefix("derived:")
    for word, digit in NUMBER_WORDS.items():
        text = re.sub(rf"^{word}$", digit, text, flags=re.IGNORECASE)
    match = re.search(r"(\d+(?:\.\d+)?)\s*([%\wμ]*)$", text)
    assert match, f"no number in {printed!r}"
    number, suffix = match.groups()
    factor = SUFFIX_FACTORS[suffix] if suffix else COLUMN_FACTORS.get((study, column), "1")
    return Decimal(number) * Decimal(factor)


@pytest.mark.parametrize("study", STUDIES)
def test_value_is_the_printed_number_in_si(study: str):
    assert sorted(path.stem for path in PUBLISHED.glob("*.csv")) == list(STUDIES)
    for row in read(study).to_dict("records"):
        assert Decimal(row["value"]) == printed_value(study, row["column"], row["printed"]), row


@pytest.mark.parametrize(
    ("trace", "text_row", "after_the_test"),
    [
        ("trace:reno", "trio_reno", 0),
        ("trace:cubic", "trio_cubic", 1),
        ("trace:vegas-itr-2", "trio_vegas", 0),
    ],
)
def test_traces_confirm_the_counts_in_the_text(trace: str, text_row: str, after_the_test: int):
    # CUBIC's trace runs on past iperf3's 60 s and sees one more retransmission.
    rows = read("kapadia")
    counts = rows[rows["column"] == "retransmissions"].astype({"value": float})
    total = counts[counts["table"] == trace]["value"].sum()
    printed = counts[(counts["table"] == "text") & (counts["row"] == text_row)]["value"].item()
    assert total == printed + after_the_test
