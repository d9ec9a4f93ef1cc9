"""Stated causes rest on experiments that hold or on sources, or are called untested."""

from types import SimpleNamespace

import pandas as pd
import pytest
from replication.base.errors import InputError
from replication.base.files import write_text
from replication.base.table import INTERVENTION_COLUMNS, INTERVENTIONS, write_table
from replication.compare.agreement import EngineDifference, load_differences
from replication.design.config import load_study, study_ids
from replication.engines.catalogue import ENGINES
from replication.explore import interventions
from replication.explore.interventions import (
    check_causes,
    check_interventions,
    check_named,
    measure,
    merge_interventions,
    scenarios_digest,
)
from replication.report.pages.causes import Causes, read_interventions
from replication.study.finding_model import load_findings
from replication.study.intervention import Intervention, load_interventions
from replication.study.stated_cause import StatedCause, check_stated
from replication.study.study import Notes, Threat

from tests.unit.conftest import ROOT, missing_from, quantity

#: Fewest experiments that must hold: so many stated causes were tested at least.
LEAST_HOLDING = 12


def stated():
    """Return all causes that studies, findings and engine differences state."""
    causes = []
    for name in study_ids(ROOT):
        for threat in load_study(ROOT, name).notes.threats:
            causes += threat.causes
        for finding in load_findings(ROOT, name):
            for statement in finding.statements():
                causes += statement.causes
    for difference in load_differences(ROOT).differences:
        causes += difference.causes
    return causes


def test_every_stated_intervention_exists_and_holds():
    known = {tested.id for tested in load_interventions(ROOT)}
    named = {cause.intervention for cause in stated() if cause.intervention}
    assert named <= known
    failing = {row["intervention"] for row in read_interventions(ROOT) if row["holds"] != "true"}
    assert not named & failing, "call these causes untested, or correct their sentences"


def test_at_least_twelve_interventions_hold():
    holding = [row["intervention"] for row in read_interventions(ROOT) if row["holds"] == "true"]
    assert len(holding) >= LEAST_HOLDING


def test_every_intervention_was_run_as_it_is_written():
    rows = {row["intervention"]: row for row in read_interventions(ROOT)}
    known = load_interventions(ROOT)
    check_interventions(ROOT, study_ids(ROOT))
    ran = [tested for tested in known if tested.id in rows]
    assert list(rows) == [tested.id for tested in ran], "run `make interventions`"
    for tested in ran:
        row = rows[tested.id]
        study = load_study(ROOT, tested.study)
        digest = scenarios_digest(tested, study, ENGINES[tested.engine])
        assert row["scenarios"] == digest, f"{tested.id}: `make interventions`"
        assert (row["sentence"], row["place"]) == (tested.sentence, tested.place)


@pytest.mark.parametrize(
    ("text", "is_causal"),
    [
        ("Vegas yields because the queue grows.", True),
        ("Vegas yields, since the queue grows.", True),
        ("Losses are due to the window.", True),
        ("The timer has 2 ms since October 2023; bytes are counted since the start.", False),
        ("Vegas yields.", False),
    ],
)
def test_a_text_that_states_a_cause_must_list_it(text, is_causal):
    if is_causal:
        with pytest.raises(InputError, match="gives a cause"):
            check_stated(text, [], ("text",))
    else:
        assert threats(text, {"text": text}) == [Threat(text=text)] * 2
    assert Threat(text=text, causes=[StatedCause(source="RFC 9293")]).causes


def threats(*values):
    notes = {"scope": "s", "easy": "e", "hard": "h", "threats": list(values)}
    return Notes.model_validate(notes).threats


def test_a_cause_names_exactly_one_of_intervention_source_and_guess():
    for keys in ({}, {"source": "s", "untested": "u"}):
        with pytest.raises(ValueError, match="intervention, source and untested"):
            StatedCause(**keys)


def test_a_difference_that_was_only_measured_needs_a_cause():
    document = {
        "id": "any",
        "title": "Any",
        "engines": {"ns3": "a", "ns2": "b"},
        "shows_in": ["timeouts"],
        "sources": ["measured on 2026-11-28"],
    }
    with pytest.raises(ValueError, match="name under `causes`"):
        EngineDifference.model_validate(document)
    EngineDifference.model_validate(document | {"causes": [{"untested": "a guess"}]})
    EngineDifference.model_validate(document | {"sources": ["measured on 2026-11-28", "RFC 9293"]})


def intervention(**changes):
    document = {
        "id": "window",
        "sentence": "The window limits the flow.",
        "place": "threats",
        "study": "synthetic",
        "engine": "ns3",
        "with_cause": {"words": "20 packets", "set": {"defaults": {"duration_s": 20}}},
        "without_cause": {"words": "100 packets"},
        "test": {
            "kind": "value",
            "of": quantity(variant="reno", access="slow"),
            "expect": {"at_most": 1e6},
        },
        "gone": {"at_least": 2e6},
    }
    return Intervention.model_validate(document | changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"with_cause": {"words": "as without"}}, "both configurations are the same"),
        (
            {"test": {"kind": "value", "of": quantity(), "expect": {"published": 1, "factor": 2}}},
            "expect must have",
        ),
    ],
)
def test_an_intervention_that_cannot_fail_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        intervention(**change)


class Machine:
    """Gives the same throughput in all runs of a duration."""

    engine = ENGINES["ns3"]

    def __init__(self, throughput):
        self.throughput = throughput

    def refusal(self, run):
        return run.refusal

    def results(self, study, points):
        (run,) = points[0]
        return SimpleNamespace(value=self.throughput[run.scenario.duration_s])


@pytest.mark.parametrize(
    ("with_cause", "without_cause", "holds"),
    [(5e5, 3e6, True), (5e5, 5e5, False), (3e6, 3e6, False), (3e6, 5e5, False)],
)
def test_an_intervention_holds_if_the_effect_appears_only_with_the_cause(
    world, monkeypatch, with_cause, without_cause, holds
):
    study = world.study()
    monkeypatch.setattr(interventions, "load_study", lambda root, name: study)

    def values(results, wanted):
        row = {"replicate": 0, "variant": "reno", "access": "slow"}
        return pd.DataFrame([row | {"value": results.value}])

    monkeypatch.setattr(interventions, "defined", values)
    default_s = study.parameters["duration_s"].value
    row = measure(ROOT, intervention(), Machine({20: with_cause, default_s: without_cause}))
    assert row["holds"] is holds
    assert (row["configuration_with"], row["configuration_without"]) == (
        "20 packets",
        "100 packets",
    )


def row_of(name, holds, sentence="The window limits the flow."):
    row = dict.fromkeys(INTERVENTION_COLUMNS, "")
    return row | {"intervention": name, "sentence": sentence, "engine": "ns3", "holds": holds}


def project(tmp_path, *rows):
    text = intervention().model_dump_json()
    document = f'{{"schema_version": 1, "interventions": [{text}]}}'
    write_text(tmp_path / "configs/interventions.yaml", document)
    write_table(tmp_path / INTERVENTIONS, rows, INTERVENTION_COLUMNS)
    return tmp_path


@pytest.mark.parametrize(
    ("rows", "doubt"),
    [
        ([row_of("window", "true")], ""),
        ([row_of("window", "false")], "do not know"),
        ([], "Not tested"),
    ],
)
def test_a_cause_is_stated_only_if_its_experiment_holds(tmp_path, rows, doubt):
    (shown,) = Causes(project(tmp_path, *rows)).shown([StatedCause(intervention="window")])
    before, _, after = shown.words.partition(intervention().sentence)
    assert doubt in before and bool(doubt) == bool(before) and after == ""
    assert shown.intervention == ("window" if rows else "")


def test_sources_are_cited_and_guesses_are_called_unknown(tmp_path):
    causes = [StatedCause(source="RFC 9293"), StatedCause(untested="the timer is coarse")]
    source, guess = (cause.words for cause in Causes(project(tmp_path)).shown(causes))
    assert not missing_from(source, "Source", "RFC 9293")
    assert not missing_from(guess, "do not know", "the timer is coarse")


def test_an_unknown_intervention_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"'windows'.* window"):
        check_named(project(tmp_path), "x", {"threat 1": [StatedCause(intervention="windows")]})


def test_every_cause_that_a_study_states_is_known():
    for name in study_ids(ROOT):
        check_causes(ROOT, load_study(ROOT, name))


def test_rows_of_engines_that_were_not_run_are_kept(tmp_path):
    root = project(tmp_path, row_of("window", "true"), row_of("removed", "true"))
    (tmp_path / "ns3").mkdir()
    merge_interventions(root, [tmp_path / "ns3"], tmp_path / "merged.csv")
    assert (tmp_path / "merged.csv").read_text().count("\n") == 2
    write_table(
        tmp_path / "ns3" / INTERVENTIONS.name, [row_of("window", "false")], INTERVENTION_COLUMNS
    )
    merge_interventions(root, [tmp_path / "ns3"], tmp_path / "merged.csv")
    assert ",false," in (tmp_path / "merged.csv").read_text()
