"""Forensics and registration: outcomes of hypotheses, fits judged on unseen cells, late changes."""

import json
import math
import shutil

import pandas as pd
import pytest
from replication.judge.registration import (
    changed_after_the_fact,
    record_path,
    register,
    registered,
)
from replication.plan.config import load_study, study_ids
from replication.sensitivity.design import PointRecord, SensitivityDesign
from replication.sensitivity.design_point import (
    DEFAULT,
    HYPOTHESIS,
    REFERENCE,
    Space,
    positions,
    varied,
)
from replication.sensitivity.forensics import (
    Candidate,
    explained_rows,
    fit,
    hypothesis_rows,
    in_fitted_half,
)
from replication.sensitivity.robustness import Verdicts
from replication.study.assumption import variant
from replication.study.change import Change
from replication.study.seal import record_of, write_sealed
from replication.study.sensitivity_settings import load_sensitivity

from tests.unit.sensitivity_data import ROOT, SETTINGS, cells_frame, hypothesis, record

KEYS = [("1", "a", "x"), ("1", "b", "x")]


@pytest.mark.parametrize(
    ("study", "halves"), [("saxena", "ffffffjfjjjjffff"), ("nishitha", "ffjjfffjffffffff")]
)
def test_a_cell_stays_in_its_half_from_version_to_version(study, halves):
    """Fitted or judged; whoever could move a cell could choose what a fit is judged on."""
    found = [in_fitted_half(study, "II", str(row), "newreno") for row in range(16)]
    assert "".join("f" if fitted else "j" for fitted in found) == halves


def test_the_halves_are_about_as_large():
    keys = [("II", str(row), column) for row in range(100) for column in "xyz"]
    assert 120 <= sum(in_fitted_half("saxena", *key) for key in keys) <= 180


def halves(count=20):
    rows = [str(number) for number in range(count)]
    fitted = [row for row in rows if in_fitted_half("s", "1", row, "x")]
    return fitted, [row for row in rows if row not in fitted]


def outcomes(point, inside, rows, reading="stated"):
    return [
        (
            point,
            reading,
            row,
            10.0 if row in inside else 20.0,
            row in inside,
            "reproduced" if row in inside else "not reproduced",
        )
        for row in rows
    ]


def test_a_fit_is_chosen_on_one_half_and_judged_on_the_other():
    fitted, unseen = halves()
    rows = [*fitted, *unseen]
    cells = cells_frame(
        outcomes(DEFAULT, unseen, rows) + outcomes("p1", fitted, rows) + outcomes("p2", [], rows)
    )
    found = fit("s", "1", cells)
    assert (found["point"], found["label"], found["tried"]) == ("p1", "fit", 3)
    assert (found["cells_fitted"], found["inside_fitted"]) == (len(fitted), len(fitted))
    assert (found["cells_judged"], found["inside_judged"]) == (len(unseen), 0)
    assert found["default_inside_judged"] == len(unseen)
    # What happens on the unseen half cannot change the choice.
    other = cells_frame(
        outcomes(DEFAULT, unseen, rows)
        + outcomes("p1", fitted, rows)
        + outcomes("p2", unseen, rows)
    )
    assert fit("s", "1", other)["point"] == "p1"


def test_a_fit_counts_those_that_do_as_well():
    fitted, unseen = halves()
    rows = [*fitted, *unseen]
    cells = cells_frame(
        outcomes(DEFAULT, [], rows)
        + outcomes("p1", rows, rows)
        + outcomes("p2", fitted, rows)
        + outcomes("p3", fitted, rows, "stated")
    )
    assert fit("s", "1", cells)["equally_good"] == 2


def test_a_cell_more_inside_outweighs_any_miss():
    near, far, two = (
        Candidate("p", "stated", inside, misses)
        for inside, misses in (
            ({KEYS[0]: True, KEYS[1]: False}, {KEYS[0]: 0.0, KEYS[1]: 0.1}),
            ({KEYS[0]: True, KEYS[1]: False}, {KEYS[0]: 0.0, KEYS[1]: math.inf}),
            ({KEYS[0]: True, KEYS[1]: True}, {KEYS[0]: 0.4, KEYS[1]: 0.4}),
        )
    )
    assert two.score(KEYS) < near.score(KEYS) < far.score(KEYS) < 0


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_a_setting_of_the_design_is_found_again_where_it_stands(name):
    """The search begins there; anywhere else it would run other scenarios than the design's."""
    axes = varied(load_study(ROOT, name), load_sensitivity(ROOT))
    space = Space(axes, {})
    for row in positions(len(axes), SETTINGS)[:16]:
        drawn = space.at(row)
        assert space.at([axis.position(drawn[axis.key]) for axis in axes]) == pytest.approx(drawn)
    defaults = {axis.key: axis.default for axis in axes}
    assert space.at([axis.position(axis.default) for axis in axes]) == defaults


def supposing(after):
    kinds = [
        record(0, DEFAULT),
        PointRecord("reference", REFERENCE, "", {}, "", []),
        PointRecord("h-h", HYPOTHESIS, "h", {}, "", []),
    ]
    rows = [str(number) for number in range(10)]
    cells = cells_frame(
        outcomes("reference", rows[:2], rows)
        + outcomes("h-h", rows[:after], rows)
        + outcomes("reference", rows[-6:], rows, "other")
    )
    design = SensitivityDesign("synthetic", "ns3", 1.0, 1.0, kinds)
    return Verdicts(design, pd.DataFrame(columns=["point", "claim"]), cells)


@pytest.mark.parametrize(
    ("after", "outcome", "brought"),
    [
        (10, "explains", 8),
        (5, "explains", 3),
        (4, "helps", 2),
        (2, "rejected", 0),
        (0, "rejected", 0),
    ],
)
def test_a_hypothesis_outcome_follows_from_the_cells(after, outcome, brought):
    supposed = hypothesis(parameters={"segment_bytes": 960})
    row = next(iter(hypothesis_rows(supposing(after), [supposed], SETTINGS)))
    assert (row["cells"], row["inside_before"], row["inside_after"]) == (10, 2, after)
    assert (row["outcome"], row["brought_inside"]) == (outcome, brought)


def test_a_reading_is_judged_on_the_reference_runs():
    supposed = hypothesis(id="other", reading={"factor": 2.0})
    row = next(iter(hypothesis_rows(supposing(2), [supposed], SETTINGS)))
    assert (row["inside_after"], row["brought_inside"], row["outcome"]) == (6, 6, "explains")


def test_every_cell_names_what_explains_it():
    supposed = [hypothesis(parameters={"segment_bytes": 960}), hypothesis(id="u", untestable="no")]
    rows = list(explained_rows(supposing(4), supposed))
    assert [row["explained_by"] for row in rows[:5]] == ["", "", "h", "h", ""]
    assert [row["rejected"] for row in rows[:5]] == ["", "", "", "", "h"]


# --- registration ---


def test_a_change_after_results_is_reported_by_its_part(tmp_path):
    study = load_study(ROOT, "nishitha")
    assert changed_after_the_fact(ROOT, tmp_path, study) == []
    register(ROOT, tmp_path, study)
    register(ROOT, tmp_path, study)
    assert changed_after_the_fact(ROOT, tmp_path, study) == []
    wider = variant(study, {"queue_packets": 60})
    assert changed_after_the_fact(ROOT, tmp_path, wider) == [
        "defaults and plausible ranges of assumptions"
    ]
    # Judged again with the change: it stays on record, even when it is taken back.
    register(ROOT, tmp_path, wider)
    register(ROOT, tmp_path, study)
    assert changed_after_the_fact(ROOT, tmp_path, study) == [
        "defaults and plausible ranges of assumptions"
    ]


def test_tolerances_and_margins_are_registered_apart(tmp_path):
    study = load_study(ROOT, "nishitha")
    register(ROOT, tmp_path, study)
    reworded = study.model_copy(
        update={"claims": [c.model_copy(update={"reading": "other"}) for c in study.claims]}
    )
    assert changed_after_the_fact(ROOT, tmp_path, reworded) == []
    change = Change(date="2026-11-22", was="a", now="b", why="c")
    annotated = study.model_copy(
        update={"tables": [t.model_copy(update={"changed": [change]}) for t in study.tables]}
    )
    assert changed_after_the_fact(ROOT, tmp_path, annotated) == []
    fewer = study.model_copy(update={"tables": study.tables[1:]})
    assert changed_after_the_fact(ROOT, tmp_path, fewer) == ["tolerances of published numbers"]


@pytest.fixture
def judged(tmp_path):
    """Return a project of its own with a registered study, its data folder and its numbers."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "data" / "published", tmp_path / "data" / "published")
    study = load_study(tmp_path, "nishitha")
    register(tmp_path, tmp_path / "results", study)
    return tmp_path, tmp_path / "results", study


def test_a_published_number_that_changed_is_reported_by_its_cell(judged):
    root, data, study = judged
    path = root / "data" / "published" / "nishitha.csv"
    text = path.read_text()
    assert changed_after_the_fact(root, data, study) == []
    path.write_text(text.replace("0.997667,0.997667", "0.99766,0.99766", 1))
    said = ["published numbers (5.1, ethernet_ethernet, delivery_ratio)"]
    assert changed_after_the_fact(root, data, study) == said
    register(root, data, study)
    path.write_text(text)
    assert changed_after_the_fact(root, data, study) == said
    # Where a number stands in the paper may be said better; one that is dropped is a change.
    path.write_text(text.replace("(senders Reno)", "(Reno sends)"))
    assert changed_after_the_fact(root, data, study) == said
    path.write_text(text.rsplit("\n", 2)[0] + "\n")
    (words,) = changed_after_the_fact(root, data, study)
    assert "; 5.5, " in words
    path.write_text(text.replace(",ethernet_ethernet,", ",ethernet,"))
    assert "and 25 more" in changed_after_the_fact(root, data, study)[0]


@pytest.mark.parametrize("damage", ["edit", "flip", "empty", "no record"])
def test_a_registration_that_was_altered_is_reported_and_stays_so(judged, damage):
    root, data, study = judged
    path = record_path(data, "nishitha")
    content = path.read_bytes()
    if damage == "no record":
        record_of(path).unlink()
    else:
        half = content[:99] + bytes([content[99] ^ 1]) + content[100:]
        now = json.dumps([registered(root, study)]).encode()
        path.write_bytes({"edit": now, "flip": half, "empty": b""}[damage])
    for _ in range(2):
        (words,) = changed_after_the_fact(root, data, study)[:1]
        assert "its file was edited or damaged" in words
        register(root, data, study)


def test_a_registration_of_before_numbers_were_registered_says_nothing_of_them(judged):
    root, data, study = judged
    then = {name: part for name, part in registered(root, study).items() if name != "published"}
    write_sealed(record_path(data, "nishitha"), json.dumps([then]))
    assert changed_after_the_fact(root, data, study) == []
