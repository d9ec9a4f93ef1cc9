"""The result of a region, as `run_region` writes it."""

from dataclasses import replace

from replication.explore.regions.region_rows import (
    AxisRow,
    LawAtPaper,
    LawRow,
    LevelAxisRow,
    Measure,
    PanelRow,
    PaperPoint,
    PointRow,
    RegionResult,
    TraitRow,
    ValidationRow,
)

LAW = LawRow("A <b>law</b>", source="S", condition="Always", segments=[(0, 0, 1, 1)])
PANEL = PanelRow(
    panel=["bbr"],
    holds=0.5,
    fails=0.25,
    undecided=0.25,
    cannot_differ=0.0,
    ties=False,
    alike=[],
    quantity=[[0.5, 2.0], [0.95, 8.0]],
    probability=[[0.01, 0.99], [0.4, 1.0]],
    contour=[(0.25, 0.25, 0.5, 1.0)],
    band=[(0.2, 0.2, 0.4, 1.0)],
    paper=PaperPoint(at=[0.25, 0.25], probability=0.01, cannot_differ=False),
    laws=[LAW],
    traits=[TraitRow("least_rto", "It times out early.")],
    starved=1,
    runs=3,
)
BUFFER = AxisRow("b", "Buffer", "BDP", low=0.1, high=10, log=True, paper=0.3)
DELAY = AxisRow("d", "Delay", "s", low=0, high=0.4, log=False, paper=0.1)


#: The paper's point lies outside of the area.
OUTSIDE = replace(PANEL, paper=PaperPoint([3, -0.1], None, cannot_differ=False))
#: In one of four cells, where the paper's point lies, alternatives cannot differ.
ALIKE = replace(
    PANEL,
    alike=[[1, 0], [0, 0]],
    cannot_differ=0.25,
    paper=PaperPoint([0.25, 0.25], 0.01, cannot_differ=True),
)


def point(x, y, note=""):
    return PointRow(["bbr"], x, y, 1.5, ["0123456789abcdef"], note, cannot_differ=False)


def checked(x, y, covered):
    return ValidationRow(
        panel=["bbr"],
        x=x,
        y=y,
        holds=True,
        covered=covered,
        cannot_differ=False,
        state_predicted=covered,
        probability=0.9,
        deviations=1.0,
        runs=[point(x, y)],
    )


RESULT = RegionResult(
    region="m",
    engine="ns3",
    tier="paper",
    title="It <i>holds</i>",
    study="synthetic",
    claim="",
    quote="Words <script>",
    place="p",
    reading="r",
    asked=["a: at least 1"],
    measure=Measure("ratio"),
    reason="",
    bounds=(1.0, None),
    axes=(BUFFER, DELAY),
    level_axes=[LevelAxisRow("s", "Sender", {"bbr": "BBR", "cubic": "CUBIC"})],
    laws_at_paper=[LawAtPaper("the law of Ware", 0.4996)],
    panels=[PANEL],
    left_out=[["cubic"]],
    points=[point(0.1, 0.0), point(10, 0.4), point(5, 0.3, "Starved: flow a")],
    validation=[checked(1, 0.2, True), checked(2, 0.2, False)],
    ties_everywhere=False,
    holds=0.5,
    fails=0.25,
    undecided=0.25,
    cannot_differ=0.0,
    coverage_90=0.5,
    brier=0.01,
    validation_points=2,
    cpu_s=120.0,
    input_hashes={},
)
