"""The table of BBR's share in longer runs, and what the page says about the law."""

import itertools
import re

import pytest
from measurements.bbr_shares import BUFFERS_BDP, RIVALS, UNTIL_S, scenario
from replication.base.table import BBR_SHARE_COLUMNS, BBR_SHARES, grouped, read_rows, write_table
from replication.engines.path import TcpPath, bbr_share
from replication.report.pages.region_words import law_runs
from replication.study.scenario import Scenario

from tests.unit.conftest import ROOT


def test_the_committed_table_has_every_run_and_the_share_by_the_law():
    rows = read_rows(ROOT / BBR_SHARES, BBR_SHARE_COLUMNS)
    cases = grouped(rows, "rival", "buffer_bdp")
    assert set(cases) == set(itertools.product(RIVALS, map(str, BUFFERS_BDP)))
    for (rival, buffer), same in cases.items():
        assert [int(row["until_s"]) for row in same] == list(UNTIL_S)
        ran = Scenario.model_validate(scenario(int(buffer), rival))
        law = float(bbr_share(TcpPath.of(ran)))
        for row in same:
            assert row["scenario"] == ran.id
            assert float(row["law"]) == pytest.approx(law, abs=1e-3)
            assert 0 < float(row["bbr_share"]) < 1 and 0 < float(row["queue_share"]) <= 1


def test_the_summary_is_computed_from_the_table(tmp_path):
    assert law_runs(tmp_path) is None
    same = {"rival": "cubic", "law": "0.500", "generation": "g", "scenario": "s"}
    rows = [
        {**same, "buffer_bdp": buffer, "until_s": end, "bbr_share": share, "queue_share": queue}
        for buffer, end, share, queue in (
            (2, 60, "0.300", "0.700"),
            (2, 400, "0.450", "0.800"),
            (8, 60, "0.200", "0.600"),
            (8, 400, "0.400", "0.900"),
        )
    ]
    write_table(tmp_path / BBR_SHARES, rows, BBR_SHARE_COLUMNS)
    summary = law_runs(tmp_path)
    assert summary.ends_s == [60, 400] and [row.buffer_bdp for row in summary.rows] == [2, 8]
    # Below the law after 60 s and after 400 s, the rise between them, and how full the queue is.
    ranges = ["0.20 to 0.30", "0.05 to 0.10", "0.15 to 0.20", "0.80 to 0.90"]
    assert re.findall(r"0\.\d\d to 0\.\d\d", summary.words) == ranges
    assert len(summary.columns) == 2 + 2 + 2
