"""Congestion in real simulations: a window that nothing gets out of, and one that loses."""

import pandas as pd
import pytest

from tests.workflow.project import ROOT, copy_project

STUDY = "configs/studies/nishitha/study.yaml"
DEFAULT = "  window_segments:\n    value: 20\n"
RANGE = "range: [20, 1000]"
CLAIMS = "data/reproduced/claims.csv"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    # Programs that are there are taken; the workflow builds what is not.
    return copy_project(tmp_path_factory.mktemp("congestion") / "project", engines_from=ROOT)


def judged(project, before, segments):
    """Return whether each claim of nishitha lacks congestion at a window, and all drops."""
    for old in (DEFAULT, RANGE):
        project.edit(STUDY, old.replace("20", str(before), 1), old.replace("20", str(segments), 1))
    project.snakemake(CLAIMS, engines="ns3", tier="quick", studies="nishitha")
    idle = pd.read_csv(project.root / CLAIMS)["reason_code"] == "no congestion"
    flows = pd.read_parquet(project.root / "data/reproduced/results/nishitha/flows.parquet")
    return idle, int(flows["packets_dropped"].sum())


def test_a_window_of_two_segments_leaves_no_variants_to_compare(project):
    tiny, drops = judged(project, 20, 2)
    assert drops == 0 and tiny.all()
    wide, drops = judged(project, 2, 1000)
    assert drops > 0 and not wide.any()
