"""Maps find planted boundaries, say when they are wrong, and refuse files that are wrong."""

import math

import pytest
import yaml
from replication.design.config import load_study
from replication.explore.maps.explore import Explorer
from replication.explore.maps.map_model import MapSettings, load_map, map_names
from replication.explore.maps.region_result import check_map
from replication.explore.maps.sampler import PointResult, replicate_point
from replication.explore.maps.space import Point, Space, TcpPath, cubic_response, mathis, ware
from replication.metrics.statistic import wilson_interval
from replication.study.errors import InputError

from tests.unit.conftest import ROOT

TIER = {"budget_factor": 1, "coarse_cells": 4, "width_factor": 1, "checks_a_side": 20, "tries": 3}
SETTINGS = MapSettings(
    seed=1, replicates=3, noise_points=3, noise_deviations=2.0, tiers={"paper": TIER}
)
#: Halvings to a sixty-fourth of an axis.
FINE = 4


class Planted:
    """Says at each point how far inside a planted boundary it is; a second of CPU a run."""

    def __init__(self, inside, noise=0.0, offset=0.0):
        self.inside, self.noise, self.offset = inside, noise, offset
        self.runs = {}

    @property
    def spent_s(self):
        return float(sum(self.runs.values()))

    def cost_s(self, points, replicates):
        return float(sum(max(0, replicates - self.runs.get(p, 0)) for p in set(points)))

    def sample(self, points, replicates):
        self.runs |= {p: max(replicates, self.runs.get(p, 0)) for p in points}
        return {point: self._result(point, replicates) for point in points}

    def _result(self, point, replicates):
        # Replicates lie around the truth, the first as far below it as the third above.
        around = [replicate_point(point, number, self.offset) for number in range(replicates)]
        values = [self.inside(one.x, one.y) for one in around]
        margins = tuple(value + self.noise * (number - 1) for number, value in enumerate(values))
        holds = 2 * sum(m >= 0 for m in margins) > replicates
        return PointResult(holds, values[0], sum(margins) / replicates, margins)


def circle(x, y):
    return 0.3 - math.hypot(x - 0.45, y - 0.55)


def explored(inside, budget_s=1e6, halvings=FINE, panels=((),), name="planted", **planted):
    sampler, spending = Planted(inside, **planted), SETTINGS.tiers["paper"]
    explorer = Explorer(name, panels, sampler, SETTINGS, spending, halvings, budget_s)
    explorer.run()
    return explorer


def test_a_planted_circle_is_found_to_the_width_and_costs_a_fifth_of_the_full_grid():
    found = explored(circle)
    (grid,) = found.grids.values()
    assert grid.width() == 1 / 64
    assert found.share() == pytest.approx(math.pi * 0.3**2, abs=0.005)
    assert grid.size == 64 and 5 * len(found.results) < 65**2
    # No cell on one side of the boundary has a corner on the other.
    for cell in grid.leaves:
        side = grid.side(cell)
        if side in ("holds", "fails"):
            assert {circle(i / 64, j / 64) >= 0 for i, j in cell.corners} == {side == "holds"}
    assert found.right() == (40, 40)


def test_a_wrong_boundary_is_detected_by_validation_points(monkeypatch):
    """The claim holds elsewhere than where the grid found it: its validation must say so."""
    with monkeypatch.context() as patched:
        patched.setattr(Explorer, "_validate", lambda self: None)
        found = explored(circle)
    found.sampler.inside = lambda x, y: circle(x - 0.25, y)
    found._validate()
    judged, right = found.right()
    assert judged == 40 and wilson_interval(right, judged)[1] < 0.95


def island(x, y):
    """A boundary that the first grid sees, and an island that it does not."""
    return max(0.17 - math.hypot(x - 0.625, y - 0.625), 0.3 - x)


def test_an_island_that_the_first_grid_misses_is_found_by_random_probes():
    found = [explored(island, name=str(number)) for number in range(10)]
    seen = [one for one in found if one.grids[()].at(0.625, 0.625) == "holds"]
    # It has an eighth of the side that it is not on: (1 - 1/8)^20 of the sets of 20 miss it.
    assert len(seen) >= 8
    for one in seen:
        assert one.share() == pytest.approx(0.3 + math.pi * 0.17**2, abs=0.02)
        assert one.right() == (40, 40)


def test_a_missed_island_is_detected_by_validation_points(monkeypatch):
    monkeypatch.setattr(Explorer, "_probe", lambda self: False)
    found = [explored(island, name=name) for name in "abc"]
    assert all(one.grids[()].at(0.625, 0.625) == "fails" for one in found)
    assert sum(right for _, right in (one.right() for one in found)) < 3 * 40


def test_a_budget_that_ends_leaves_a_wider_boundary_and_says_so():
    found = explored(circle, budget_s=150)
    assert found.sampler.spent_s <= 150
    assert found.grids[()].width() > 1 / 64
    # The first grid of the first panel is always had.
    nothing = explored(circle, budget_s=1, panels=(("a",), ("b",)))
    assert list(nothing.grids) == [("a",)] and nothing.left_out == [("b",)]


def test_only_points_within_the_noise_are_replicated():
    calm = explored(circle)
    assert calm.grids[()].noise == 0
    # Those from which the noise is learnt have replicates, no others.
    assert sorted(calm.sampler.runs.values())[-4:] == [1, 3, 3, 3]
    found = explored(circle, noise=0.02)
    grid, runs = found.grids[()], found.sampler.runs
    assert grid.noise == pytest.approx(0.04, rel=0.01)
    replicated = {point for point, count in runs.items() if count == 3}
    # One run alone reads 0.02 too little; within 0.04 of the boundary it is not believed.
    off = {point: abs(circle(point.x, point.y) - 0.02) for point in runs}
    near = {point for point in off if off[point] < 0.0399}
    assert near <= replicated and len(near) > 10
    assert sum(off[point] > 0.0401 for point in replicated) <= SETTINGS.noise_points
    assert found.share() == pytest.approx(math.pi * 0.3**2, abs=0.01)
    # The noise of a mean of three is by their root the less.
    kept = replicated & found.results.keys()
    unsure = {point for point in kept if found.results[point].is_unsure(grid.noise)}
    assert unsure == {p for p in kept if abs(circle(p.x, p.y)) < 0.04 / math.sqrt(3)}
    assert 10 < len(unsure) < len(kept)


def test_a_verdict_that_a_hair_changes_is_on_the_boundary(monkeypatch):
    """Nothing is left to chance here: only points beside it tell that there is no verdict."""

    def hair(x, y):
        return x - 0.7 + 0.1 * math.sin(3000 * x)

    monkeypatch.setattr(Explorer, "_probe", lambda self: False)
    found = explored(hair, halvings=2, offset=0.001)
    assert {found.grids[()].at(x, 0.5) for x in (0.65, 0.75)} == {"border"}
    judged, right = found.right()
    assert judged == 40 and right >= 38


@pytest.mark.parametrize(("noise", "side"), [(0.0, "holds"), (0.02, "border")])
def test_on_the_bound_a_tie_holds_unless_replicates_differ(noise, side):
    grid = explored(lambda x, y: min(0.0, 0.5 - x), noise=noise).grids[()]
    assert (grid.at(0.2, 0.5), grid.at(0.9, 0.5)) == (side, "fails")
    assert not any(PointResult(True, 0.0, 0.0, (0.0,) * n).is_unsure(1.0) for n in (1, 3))


def test_there_is_a_threshold_where_every_line_has_one():
    slope = explored(lambda x, y: x - 0.4 - 0.2 * y).grids[()]
    found = slope.threshold(0)
    assert found["above"]
    assert (found["lowest"], found["highest"]) == pytest.approx((0.4, 0.6), abs=0.02)
    assert explored(circle).grids[()].threshold(0) is None
    assert slope.boundary_from(0.9, 0.5, 0) == pytest.approx(0.5, abs=0.02)


def test_a_path_is_that_of_the_first_tcp_flow_at_a_point():
    point, study = Point(("reno",), 0.5, 0.5), load_study(ROOT, "kapadia")
    lossy, buffered = (
        Space(load_map(ROOT, f"kapadia_{name}"), study, "ns3")
        for name in ("random_loss", "buffer_for_full_link")
    )
    own = lossy.path(point)
    assert (own.rate_bps, own.segment_bytes, own.packet_bytes) == (1e6, 1448, 1500)
    assert (own.loss, own.rtt_s) == pytest.approx(lossy.values(point), rel=1e-4)
    assert own.queue_packets == pytest.approx(104857 / 1500)
    # The middle of the buffer's axis is one product.
    own = buffered.path(point)
    assert own.bdp_packets == pytest.approx(1e6 * own.rtt_s / 8 / 1500)
    assert own.queue_packets == pytest.approx(own.bdp_packets, abs=0.01)


def path(**changes):
    base = {"rate_bps": 1e7, "rtt_s": 0.1, "segment_bytes": 1448, "packet_bytes": 1500}
    return TcpPath(**base | {"queue_packets": 100.0, "loss": 0.01, "active_s": 100.0} | changes)


def test_laws_are_those_of_their_sources():
    law = load_map(ROOT, "kapadia_random_loss").theory[0]
    # 1448 * 8 * C / (0.1 * sqrt(0.01)) of 10 Mbit/s.
    assert mathis(law, path()) == pytest.approx(1448 * 8 * law.constant / 0.01 / 1e7)
    assert mathis(law, path(loss=0.04)) == pytest.approx(mathis(law, path()) / 2)
    # Small products: Reno's window is the larger; large ones: CUBIC's, of p to the power of 3/4.
    assert cubic_response(law, path()) == pytest.approx(math.sqrt(1.5) * 1448 * 8 / 0.01 / 1e7)
    often, seldom = (cubic_response(law, path(rtt_s=1.0, loss=p)) for p in (1e-5, 1e-6))
    assert often / seldom == pytest.approx(10**-0.75)
    # Near one product BBR takes all, in deep buffers about a half.
    bdp = path().bdp_packets
    assert ware(law, path(queue_packets=bdp)) == 1.0
    deep = ware(law, path(queue_packets=8 * bdp))
    assert 0.4 < deep < 0.55 < 0.8 < ware(law, path(queue_packets=1.5 * bdp))


def test_all_five_papers_have_a_map():
    assert len({load_map(ROOT, name).study for name in map_names(ROOT)}) == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["axes"].pop(0), "axes: 1 have a range"),
        (lambda m: m.update(id="other"), "must be 'kapadia_buffer_for_full_link'"),
        (lambda m: m.update(study="nobody"), "there are dzivhani"),
        (lambda m: (m.pop("sentence"), m.update(claim="c99")), "it has c01"),
        (lambda m: (m.pop("sentence"), m.update(claim="c07")), "give a sentence"),
        (lambda m: m.pop("reason"), "say why"),
        (lambda m: m["axes"][0]["range"].update(low=20.0), "low must be below high"),
        (lambda m: m["axes"][0]["of_bdp"].update(parameter="bufer"), "bufer"),
        (lambda m: m["axes"][0].pop("of_bdp"), "one of set and of_bdp"),
        (lambda m: m["sentence"]["test"]["of"].update(metric="thruput"), "thruput"),
        (lambda m: m["theory"][0].update(axis="rate"), "no axis"),
    ],
)
def test_an_invalid_region_file_is_named_with_its_field(tmp_path, change, words):
    (tmp_path / "configs/maps").mkdir(parents=True)
    for name in ("studies", "tiers", "config.yaml", "mapping.yaml"):
        (tmp_path / "configs" / name).symlink_to(ROOT / "configs" / name)
    file = "configs/maps/kapadia_buffer_for_full_link.yaml"
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    change(document)
    (tmp_path / file).write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(InputError, match=rf"kapadia_buffer_for_full_link(.|\n)*{words}"):
        check_map(tmp_path, "kapadia_buffer_for_full_link")
