"""The command on a page of runs gives the numbers on it."""

import shlex
import subprocess

import pandas as pd
import pytest

from tests.browser.conftest import some_runs


def test_the_command_on_the_page_gives_the_numbers_on_the_page(tab, project, report, tmp_path):
    page = tab().open(some_runs(report)[0])
    section = page.locator("section:has(code.command)").first
    command = section.locator("code.command").first.inner_text()
    words = [*shlex.split(command), "--output", str(tmp_path)]
    subprocess.run(words, check=True, cwd=project.root, env=project.environment())
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
