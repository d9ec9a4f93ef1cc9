"""Readings of what a paper does not print: judged side by side, and shown as a table."""

import pandas as pd
import pytest
from pydantic import ValidationError
from replication.base.errors import InputError
from replication.base.files import write_text
from replication.base.table import read_rows, write_table
from replication.design.config import Sensitivity, load_sensitivity, load_study
from replication.engines.catalogue import ENGINES
from replication.explore.readings import READING_COLUMNS, READINGS, check_readings, judge_readings
from replication.explore.robustness import INPUT_HASHES, sources
from replication.metrics.sampled import SampledResults
from replication.study.scenario import canonical_json
from replication.study.study import Study

from tests.unit.conftest import FLOW_ROW, ROOT, study_document
from tests.unit.report_project import example, soup

NAMED = [
    {"title": "as assumed", "values": {}, "reason": "The default."},
    {"title": "a slower link", "values": {"bottleneck_bps": 8.0e5}, "reason": "Some use it."},
]


def settings(readings=NAMED):
    document = load_sensitivity(ROOT).model_dump()
    document["other_studies"]["readings"] = readings
    return Sensitivity.model_validate(document)


def assumed_rate(made):
    made["parameters"]["bottleneck_bps"] = {
        "value": 1.0e6,
        "assumed": {"reason": "r", "source": "s", "range": [1.0e5, 1.0e7]},
    }
    return made


class BusyLink:
    """A machine on which two flows use four fifths of the bottleneck, or less by replicate."""

    engine = ENGINES["ns3"]

    def results(self, study, replicates):
        design, flows, samples, scenarios = [], [], [], {}
        for number, runs in enumerate(replicates):
            for run in runs:
                key = {"scenario": run.scenario_id, "engine": "ns3"}
                rate_bps = min(link.rate_bps for link in run.scenario.links)
                at = {"experiment": run.experiment, "point": run.point, "levels": run.levels}
                design.append({**key, **at, "replicate": number, "reason": "", "supported": True})
                scenarios[run.scenario_id] = run.scenario.model_dump(mode="json")
                samples.append({**key, "time_s": 1.0, "flow": None, "link": "bottleneck:ab"})
                for flow in run.scenario.flows:
                    rates = {"throughput_bps": 0.4 * rate_bps - number}
                    flows.append({**FLOW_ROW, **key, "flow": flow.id, "kind": "tcp", **rates})
        series = pd.DataFrame(samples).assign(queue_packets=1.0, drops=0.0)
        read = series.assign
        return SampledResults(
            study, pd.DataFrame(design), pd.DataFrame(flows), scenarios, read_series=read
        )


def test_a_reading_is_judged_by_its_own_runs(world, tmp_path, monkeypatch):
    study = Study.model_validate(assumed_rate(example(world).model_dump(mode="json")))
    monkeypatch.setattr("replication.explore.readings.load_study", lambda *_: study)
    monkeypatch.setattr("replication.explore.readings.load_sensitivity", lambda _: settings())
    judge_readings(ROOT, study.id, tmp_path, BusyLink())
    rows = read_rows(tmp_path / READINGS, READING_COLUMNS)
    verdicts = {(row["reading"], row["claim"]): row["verdict"] for row in rows}
    assert verdicts["as assumed", "value"] == "reproduced"
    assert verdicts["a slower link", "value"] == "not reproduced"
    assert {row["runs"] for row in rows} == {"5"}


def test_a_reading_of_a_published_parameter_is_refused():
    study = Study.model_validate(study_document(claims=[]) | {"claims": []})
    with pytest.raises(InputError, match="assumption: 'bottleneck_bps'"):
        check_readings(study, settings())


def test_two_readings_with_the_same_title_are_refused():
    with pytest.raises((InputError, ValidationError), match="duplicate reading"):
        settings([NAMED[0], NAMED[0]])


def test_the_page_shows_each_claim_by_reading(project):
    project.add(example(project.world))
    project.link_engines()
    write_text(project.root / "configs/sensitivity.yaml", canonical_json(settings().model_dump()))
    study = load_study(project.root, "synthetic")
    rows = []
    for reading in NAMED:
        for claim in study.claims:
            holds = reading["title"] == "as assumed" and claim.id == "value"
            row = dict.fromkeys(READING_COLUMNS, "")
            row |= {"claim": claim.id, "reading": reading["title"], "engine": "ns3", "runs": "5"}
            rows.append(row | {"verdict": "reproduced" if holds else "not reproduced"})
    folder = project.data / "sensitivity/synthetic"
    write_table(folder / READINGS, rows, READING_COLUMNS)
    hashes = sources(project.root, study.id, ENGINES["ns3"])
    write_text(folder / INPUT_HASHES, canonical_json(hashes))
    page = soup(project.render("synthetic") / "synthetic~evidence.html")
    section = page.find("h2", id="readings").parent
    items = [item.get_text(" ", strip=True) for item in section.select("ul li")]
    assert "1 of 4" in items[0] and "0 of 4" in items[1]
    first = [cell.get_text(strip=True) for cell in section.select_one("tbody tr").select("th, td")]
    assert first[:3] == ["value", "reproduced", "not reproduced"]
