"""Check a study's findings, which rest on its claims and regions."""

from pathlib import Path

from replication.base.errors import InputError, check_known
from replication.base.position import located, within
from replication.design.study_check import Points, check_test
from replication.explore.regions.region_model import load_region, region_names
from replication.study.finding_model import Fact, Statement, findings_path, load_findings
from replication.study.setup import Setup
from replication.study.study import Study


def check_findings(root: Path, study: Study, points: Points) -> None:
    """Raise InputError for what a study's findings name that is not there, or can never hold."""
    with located(findings_path(root, study.id)):
        for number, finding in enumerate(load_findings(root, study.id)):
            with within("findings", number):
                if finding.chart is not None:
                    named = finding.chart.partition("~")[0]
                    known = {e.id for e in study.experiments}
                    check_known("chart: experiment", [named], known, ("chart",))
                _check_facts(root, study, finding, points)
                if finding.textbook:
                    with within("textbook"):
                        _check_textbook(study)
                        _check_facts(root, study, finding.textbook, points)


def _check_textbook(study: Study) -> None:
    if Setup.TEXTBOOK not in study.setups:
        text = "textbook: the study has no such set-up; delete it, or add the set-up to `setups`"
        raise InputError(text)


def _check_facts(root: Path, study: Study, statement: Statement, points: Points) -> None:
    for name, fact in statement.facts.items():
        with within("facts", name, words=f"fact {name}"):
            _check_fact(root, study, fact, points)


def _check_fact(root: Path, study: Study, fact: Fact, points: Points) -> None:
    for key in ("ours", "paper"):
        if (test := getattr(fact, key)) is not None:
            with within(key):
                check_test(study, test, points)
    if fact.region:
        check_known("region", [fact.region], region_names(root), ("region",))
        region = load_region(root, fact.region)
        check_known("engine of the region", [str(fact.engine)], region.engines, ("engine",))
        span = region.axes[1].range
        if not 0 <= span.position(fact.at or 0.0) <= 1:
            text = f"at: is {fact.at:g}; it must lie on the axis, {span.low:g} to {span.high:g}"
            raise InputError(text, ("at",))
