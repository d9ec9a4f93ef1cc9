"""Whose verdicts stand for a study: every branch of the rule, and what is said of a stand-in."""

import pytest
from replication.verdicts.verdict_table import headline, participations


def design(**engines):
    """Rows of a design: engine to the points' refusals, empty where it runs the point."""
    return [
        {
            "experiment": "e",
            "point": str(number),
            "engine": engine,
            "supported": str(not refusal),
            "reason": refusal,
        }
        for engine, refusals in engines.items()
        for number, refusal in enumerate(refusals)
    ]


RAN, REFUSED = ["", ""], ["no queue 'codel'", "no queue 'codel'"]


@pytest.mark.parametrize(
    ("original", "engines", "stands", "mark"),
    [
        ("ns2", {"ns3": RAN, "ns2": RAN}, "ns2", ""),
        ("ns2", {"ns3": RAN, "ns2": ["no bbr", ""]}, "ns2", ""),
        (
            "linux",
            {"ns2": RAN, "ns3": RAN},
            "ns3",
            "Verdicts of ns3; the paper ran Linux, which did not run here.",
        ),
        (
            "ns2",
            {"ns2": REFUSED, "ns3": RAN},
            "ns3",
            "Verdicts of ns3; the paper ran ns-2, which refuses all 2 points (no queue 'codel').",
        ),
        (
            "ns3",
            {"ns2": RAN, "linux": RAN},
            "ns2",
            "Verdicts of ns2; the paper ran ns-3, which did not run here.",
        ),
        (
            "linux",
            {"ns2": REFUSED, "ns3": REFUSED},
            "ns2",
            "No engine ran this study; ns2 refuses all 2 points (no queue 'codel').",
        ),
        ("ns3", {}, "", "No engine ran this study."),
    ],
    ids=["own", "own in part", "absent", "refuses all", "neither", "none ran", "none asked"],
)
def test_the_papers_own_engine_stands_if_it_ran(original, engines, stands, mark):
    chosen = headline(original, participations(design(**engines)))
    assert (chosen.engine, chosen.original, chosen.mark) == (stands, original, mark)


def test_participation_counts_points_not_replicates():
    rows = design(ns2=["", "no bbr", "no prr", "no bbr"]) * 3
    part = participations(rows)["ns2"]
    assert (part.ran, part.refused, part.points) == (1, 3, 4)
    assert part.reasons == ("no bbr", "no prr") and part.why_not() == ""
