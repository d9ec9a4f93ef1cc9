"""No engine differs from another or from theory without a named cause."""

import pytest
from replication.engines.catalogue import ENGINES
from replication.study.table import DIFFERENCE_COLUMNS, read_rows

from tests.engines.differences import CONDITIONS, LARGEST, PACKET_BITS, TABLE, law, rows

KEY = DIFFERENCE_COLUMNS[:4]
#: A minute of CPU: each variant once in each kind of condition.
SEEDED = [c for c in CONDITIONS if c.rtt_s == 0.1 and c.delayed and c.loss in (0, 0.01)]
FEW = ["newreno", "cubic", "highspeed", "bbr", "vegas"]


@pytest.fixture(scope="module")
def measured(request):
    """Return the rows of a subset, run anew on every engine."""
    return rows([request.getfixturevalue(engine) for engine in ENGINES], SEEDED, FEW)


def test_a_difference_that_is_measured_has_a_named_cause(measured):
    assert len(measured) > 30
    large = [row for row in measured if row["difference"] > LARGEST]
    assert large and [row for row in large if not row["entry"]] == []


def test_the_committed_table_is_what_the_engines_give(measured):
    kept = {tuple(row[k] for k in KEY): float(row["value"]) for row in read_rows(TABLE, KEY)}
    for row in measured:
        assert row["value"] == pytest.approx(kept[tuple(row[k] for k in KEY)], rel=0.05)


def test_theory_is_of_the_published_formulas():
    (bottleneck,) = [c for c in CONDITIONS if c == (0, 0.1, False)]
    (lossy,) = [c for c in CONDITIONS if c == (0.01, 0.1, False)]
    assert law("bbr", bottleneck, "rtt_s") == pytest.approx(0.1031, abs=1e-4)
    # The mean of a sawtooth from one to two bandwidth-delay products.
    assert law("newreno", bottleneck, "rtt_s") == pytest.approx(1.556 * 0.1031, rel=1e-3)
    # Mathis: 12.25 segments; by Padhye's equation 30 timeouts of 0.2 s take 4.3 % of them: 11.72.
    segments = law("newreno", lossy, "throughput_bps") * 0.1 / PACKET_BITS
    assert segments == pytest.approx(11.72, rel=0.01)
