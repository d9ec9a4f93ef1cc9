"""The command on a page of runs gives the numbers on it. Needs a report of a real run."""

import os
import shlex
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.browser.conftest import some_runs

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    "REPLICATION_REPORT_HTML" not in os.environ, reason="the example data have no engines beside"
)
def test_the_command_on_the_page_gives_the_numbers_on_the_page(tab, report, tmp_path):
    page = tab().open(some_runs(report)[0])
    section = page.locator("section:has(code.command)").first
    command = section.locator("code.command").first.inner_text()
    subprocess.run([*shlex.split(command), "--output", str(tmp_path)], check=True, cwd=ROOT)
    flows = pd.read_csv(tmp_path / "flows.csv")
    lines = section.locator("table[data-sortable] tbody tr").all()
    shown = {
        line.locator("th").inner_text(): float(line.locator("td").nth(2).inner_text())
        for line in lines
        if line.locator("td").first.inner_text() == "1"
    }
    assert shown == pytest.approx(
        dict(zip(flows["flow"], flows["throughput_bps"] * 1e-6, strict=True)), rel=1e-3
    )
