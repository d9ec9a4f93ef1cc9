"""The version ladder: what counts as changed, what a stale ladder is, and its section."""

import csv
import json
from pathlib import Path

import pytest
from replication.compare import ladder
from replication.engines.ns3_version import NS3_VERSION
from replication.report.pages.compared import ladder as report_ladder
from replication.report.parts.page import plain_environment
from replication.report.parts.source import Source
from replication.study.errors import InputError
from replication.study.storage.seal import sealed, write_sealed
from replication.study.storage.table import CELL_COLUMNS, CLAIM_COLUMNS

ROOT = Path(__file__).resolve().parents[2]
OLD = "3.39.post2"


def write(path, columns, rows):
    with sealed(path) as target, target.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def cell(row, mean, low, high, verdict="reproduced"):
    return {
        "study": "saxena",
        "table": "2",
        "row": row,
        "column": "newreno",
        "engine": "ns3",
        "unit": "bit/s",
        "reproduced_mean": mean,
        "reproduced_low": low,
        "reproduced_high": high,
        "verdict": verdict,
    }


def claim(name, observed, verdict):
    return {"study": "dzivhani", "claim": name, "observed": observed, "verdict": verdict}


DEFAULT = [
    cell("same", "1", "0.9", "1.1"),
    cell("within", "2", "1.5", "2.5"),
    cell("beyond", "3", "2.9", "3.1"),
    cell("single", "4", "", ""),
    cell("refused", "5", "4.9", "5.1"),
    cell("neither", "", "", "", "not testable"),
]
OTHER = [
    cell("same", "1", "0.8", "1.2"),
    cell("within", "2.2", "1.8", "2.6"),
    cell("beyond", "4", "3.9", "4.1", "not reproduced"),
    cell("single", "4.1", "", ""),
    cell("refused", "", "", "", "not testable"),
    cell("neither", "", "", "", "not testable"),
]


@pytest.fixture
def data(tmp_path):
    """Return a data folder with evaluations of two versions."""
    for version, cells, verdict in (
        (OLD, OTHER, "direction only"),
        (NS3_VERSION, DEFAULT, "reproduced"),
    ):
        folder = tmp_path / "ladder" / version / "evaluation"
        write(folder / "saxena" / "cells.csv", CELL_COLUMNS, cells)
        write(folder / "saxena" / "claims.csv", CLAIM_COLUMNS, [])
        write(folder / "dzivhani" / "cells.csv", CELL_COLUMNS, [])
        write(folder / "dzivhani" / "claims.csv", CLAIM_COLUMNS, [claim("c01", "7", verdict)])
    return tmp_path


def source(data):
    return Source(root=ROOT, data=data, cells=[], claims=[], audit=[], provenance={})


def test_the_settings_are_typed(tmp_path):
    assert ladder.load_settings(ROOT).tier == "quick"
    (tmp_path / "configs").mkdir()
    for text, wrong in (("tier: quick\nstudies: []\n", "studies"), ("studies: [a]\n", "tier")):
        (tmp_path / ladder.SETTINGS).write_text(text)
        with pytest.raises(InputError, match=rf"ladder\.yaml.*{wrong}"):
            ladder.load_settings(tmp_path)


def test_every_kind_of_change_is_told_apart(data):
    rows = ladder.write_ladder(ROOT, data, [OLD, NS3_VERSION])
    found = {r["row"]: r["change"] for r in rows if r["version"] == OLD and r["kind"] == "cell"}
    assert found == {
        "same": "same",
        "within": "within interval",
        "beyond": "beyond interval",
        "single": "no interval",
        "refused": "not run",
        "neither": "no value",
    }


def test_the_summary_counts_values_and_verdicts(data):
    cells, claims = ladder.summarise(ladder.write_ladder(ROOT, data, [OLD, NS3_VERSION]))
    assert (cells.kind, cells.compared, cells.changed) == ("cell", 4, 3)
    assert (cells.beyond, cells.no_interval, cells.not_run, cells.flipped) == (1, 1, 1, 1)
    assert (claims.kind, claims.compared, claims.changed, claims.flipped) == ("claim", 1, 0, 1)


def test_the_default_version_must_be_there(data):
    with pytest.raises(InputError, match=NS3_VERSION):
        ladder.write_ladder(ROOT, data, [OLD])


def test_a_ladder_of_other_code_is_not_current(data):
    ladder.write_ladder(ROOT, data, [OLD, NS3_VERSION])
    assert ladder.read_ladder(ROOT, data)[1]
    stamp = json.loads((data / "ladder.json").read_text())
    for name in stamp:
        write_sealed(data / "ladder.json", json.dumps({**stamp, name: "0"}))
        assert not ladder.read_ladder(ROOT, data)[1], name
    kinds = {name.split()[0].split("/")[0] for name in stamp}
    assert kinds == {"program", "configs", "data", "code"}
    (data / "ladder.json").unlink()
    assert not ladder.read_ladder(ROOT, data)[1]


def test_there_is_no_section_without_a_ladder(tmp_path):
    assert report_ladder.ladder_view(source(tmp_path)) is None


def rendered(view):
    template = plain_environment().from_string(
        '{% import "ladder.html" as part %}{{ part.section(view) }}'
    )
    return template.render(view=view)


def test_the_section_shows_flips_and_what_the_release_notes_say(data):
    ladder.write_ladder(ROOT, data, [OLD, NS3_VERSION])
    view = report_ladder.ladder_view(source(data))
    assert {
        (row["row"], row["claim"], row["version"], row["verdict"]) for row, _ in view.flips
    } == {
        ("beyond", "", OLD, "not reproduced"),
        ("", "c01", OLD, "direction only"),
    }
    assert [(s.older, s.newer, s.compared, s.changed) for s in view.steps] == [
        (OLD, NS3_VERSION, 5, 3)
    ]
    assert view.refused == [(OLD, "saxena", 1)]
    assert [figure.id for figure in view.figures] == ["~ladder~verdicts", "~ladder~differences"]
    text = rendered(view)
    assert "claim c01" in text
    assert "table 2, beyond, newreno" in text
    assert "#1126" in text


def test_a_stale_ladder_shows_no_number(data):
    ladder.write_ladder(ROOT, data, [OLD, NS3_VERSION])
    (data / "ladder.json").unlink()
    view = report_ladder.ladder_view(source(data))
    assert not view.current
    assert view.figures == []
    text = rendered(view)
    assert "make ladder" in text
    assert "claim c01" not in text
