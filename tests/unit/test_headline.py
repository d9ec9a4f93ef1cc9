"""Whose verdicts stand for a study: every branch of the rule, and what is said of a stand-in."""

import pytest
from replication.verdicts.verdict_table import headline, participations


def design(**engines):
    """Rows of a design: engine to the points' refusals, empty where it runs the point."""
    return [
        {"experiment": "e", "point": str(number), "engine": engine}
        | {"supported": str(not refusal), "reason": refusal}
        for engine, refusals in engines.items()
        for number, refusal in enumerate(refusals)
    ]


RAN, REFUSED = ["", ""], ["no queue 'codel'", "no queue 'codel'"]
ABSENT, REFUSES = "which did not run here", "refuses all 2 points (no queue 'codel')"


@pytest.mark.parametrize(
    ("original", "engines", "stands", "said"),
    [
        ("ns2", {"ns3": RAN, "ns2": RAN}, "ns2", ""),
        ("ns2", {"ns3": RAN, "ns2": ["no bbr", ""]}, "ns2", ""),
        ("linux", {"ns2": RAN, "ns3": RAN}, "ns3", f"ns3; the paper ran Linux, {ABSENT}"),
        ("ns2", {"ns2": REFUSED, "ns3": RAN}, "ns3", f"the paper ran ns-2, which {REFUSES}"),
        ("ns3", {"ns2": RAN, "linux": RAN}, "ns2", f"ns2; the paper ran ns-3, {ABSENT}"),
        (
            "linux",
            {"ns2": REFUSED, "ns3": REFUSED},
            "ns2",
            f"No engine ran this study; ns2 {REFUSES}",
        ),
        ("ns3", {}, "", "No engine ran this study."),
    ],
    ids=["own", "own in part", "absent", "refuses all", "neither", "none ran", "none asked"],
)
def test_the_papers_own_engine_stands_if_it_ran(original, engines, stands, said):
    chosen = headline(original, participations(design(**engines)))
    assert (chosen.engine, chosen.original) == (stands, original)
    assert said in chosen.mark and bool(said) == bool(chosen.mark)


def test_participation_counts_points_not_replicates():
    part = participations(design(ns2=["", "no bbr", "no prr", "no bbr"]) * 3)["ns2"]
    assert (part.ran, part.refused, part.points) == (1, 3, 4)
    assert part.reasons == ("no bbr", "no prr") and part.why_not() == ""
