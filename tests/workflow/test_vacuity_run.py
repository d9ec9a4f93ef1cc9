"""Vacuous verdicts on real simulations: a window that nothing gets out of, and one that loses."""

import pandas as pd
import pytest

from tests.workflow.project import ROOT, copy_project

STUDY = "configs/studies/nishitha/study.yaml"
DEFAULT = "  window_segments:\n    value: 20\n"
RANGE = "range: [20, 1000]"
FLAGS = "data/reproduced/claim_flags.csv"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    # Programs that are there are taken; the workflow builds what is not.
    return copy_project(tmp_path_factory.mktemp("vacuity") / "project", engines_from=ROOT)


def flags(project, before, segments):
    """Return verdict and mark of each claim of nishitha at a window, and all drops."""
    for old in (DEFAULT, RANGE):
        project.edit(STUDY, old.replace("20", str(before), 1), old.replace("20", str(segments), 1))
    project.snakemake(FLAGS, tier="quick", studies="nishitha")
    data, keys = project.root / "data/reproduced", ["claim", "engine"]
    both = pd.read_csv(data / "claims.csv").merge(pd.read_csv(project.root / FLAGS), on=keys)
    flows = pd.read_parquet(data / "results/nishitha/flows.parquet")
    return both[both["verdict"] != "not testable"], int(flows["packets_dropped"].sum())


def test_a_window_of_two_segments_leaves_no_verdict_that_means_something(project):
    tiny, drops = flags(project, 20, 2)
    assert drops == 0 and len(tiny) > 8
    assert tiny["vacuous"].all(), tiny[~tiny["vacuous"]]
    wide, drops = flags(project, 2, 1000)
    assert drops > 0 and not wide["vacuous"].any(), wide[wide["vacuous"]]
