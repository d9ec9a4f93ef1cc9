"""Vacuous verdicts on real simulations: a window that nothing gets out of, and one that loses."""

import pandas as pd
import pytest

from tests.workflow.project import ROOT, copy_project

STUDY = "configs/studies/nishitha/study.yaml"
DEFAULT = "  window_segments:\n    value: 20\n"
RANGE = "range: [20, 1000]"


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Return how to run nishitha with a window: claim to verdict and vacuity, and all drops."""
    # Programs that are there are taken; the workflow builds what is not.
    project = copy_project(tmp_path_factory.mktemp("vacuity") / "project", engines_from=ROOT)
    text = (project.root / STUDY).read_text(encoding="utf-8")
    assert DEFAULT in text and RANGE in text

    def run(segments):
        changed = text.replace(DEFAULT, DEFAULT.replace("20", str(segments)))
        (project.root / STUDY).write_text(
            changed.replace(RANGE, f"range: [{segments}, 1000]"), encoding="utf-8"
        )
        data = project.root / "data/reproduced"
        project.snakemake(
            str((data / "claim_flags.csv").relative_to(project.root)),
            engines="ns3",
            tier="quick",
            studies="nishitha",
        )
        keys = ["claim", "engine"]
        found = pd.read_csv(data / "claims.csv").set_index(keys)["verdict"]
        marks = pd.read_csv(data / "claim_flags.csv").set_index(keys)["vacuous"]
        flows = pd.read_parquet(data / "results/nishitha/flows.parquet")
        both = pd.DataFrame({"verdict": found, "vacuous": marks})
        return both[both["verdict"] != "not testable"], int(flows["packets_dropped"].sum())

    return run


def test_a_window_of_two_segments_leaves_no_verdict_that_means_something(flags):
    tiny, drops = flags(2)
    assert drops == 0 and len(tiny) > 8
    assert tiny["vacuous"].all(), tiny[~tiny["vacuous"]]
    wide, drops = flags(1000)
    assert drops > 0 and not wide["vacuous"].any(), wide[wide["vacuous"]]
