"""Maps find planted borders, say when they are wrong, and refuse files that are wrong."""

import math

import pytest
import yaml
from replication.explore.maps.account import check_map
from replication.explore.maps.explore import Explorer
from replication.explore.maps.grid import threshold, to_border
from replication.explore.maps.map_model import (
    MapSettings,
    Spending,
    load_map,
    load_mapping,
    map_names,
)
from replication.explore.maps.space import TcpPath, cubic_response, mathis, path_of, ware
from replication.explore.maps.survey import Reading, offset_place
from replication.study.errors import InputError
from replication.study.scenario import Scenario

from tests.unit.sensitivity_data import ROOT
from tests.unit.test_scenario import minimal_scenario

TIER = {
    "budget_factor": 1.0,
    "coarse_cells": 4,
    "width_factor": 1.0,
    "checks_a_side": 20,
    "tries": 3,
}
SPENDING = Spending.model_validate(TIER)
SETTINGS = MapSettings.model_validate(
    {
        "seed": 1,
        "replicates": 3,
        "noise_points": 3,
        "noise_deviations": 2.0,
        "tiers": {"paper": TIER},
    }
)
#: Halvings to a sixty-fourth of an axis.
FINE = 4


class StandIn:
    """Says at each place how far inside a planted border it is; a second of CPU a run."""

    def __init__(self, inside, noise=0.0, offset=0.0):
        self.inside, self.noise, self.offset = inside, noise, offset
        self.runs = {}

    @property
    def spent_s(self):
        return float(sum(self.runs.values()))

    def cost_s(self, places, replicates):
        return float(sum(max(0, replicates - self.runs.get(p, 0)) for p in set(places)))

    def read(self, places, replicates):
        for place in places:
            self.runs[place] = max(replicates, self.runs.get(place, 0))
        return {place: self._reading(place, replicates) for place in places}

    def _reading(self, place, replicates):
        # Replicates lie around the truth, the first as far below it as the third above.
        around = [offset_place(place, number, self.offset) for number in range(replicates)]
        values = [self.inside(one.across, one.up) for one in around]
        margins = tuple(value + self.noise * (number - 1) for number, value in enumerate(values))
        holds = 2 * sum(m >= 0 for m in margins) > replicates
        return Reading(holds, values[0], sum(margins) / replicates, margins)


def circle(across, up):
    return 0.3 - math.hypot(across - 0.45, up - 0.55)


def explored(
    inside, budget_s=1e6, halvings=FINE, noise=0.0, offset=0.0, facets=((),), name="planted"
):
    surveyor = StandIn(inside, noise, offset)
    explorer = Explorer(name, facets, surveyor, SETTINGS, SPENDING, halvings, budget_s)
    return explorer.run(), surveyor


def test_a_planted_circle_is_found_to_the_width_and_costs_a_fifth_of_the_full_grid():
    found, _ = explored(circle)
    (grid,) = found.grids.values()
    assert grid.width() == 1 / 64
    assert found.share() == pytest.approx(math.pi * 0.3**2, abs=0.005)
    assert 5 * len(found.readings) < found.full_points == 65**2
    # No cell on one side of the border has a corner on the other.
    for cell in grid.leaves:
        side = grid.side(cell)
        if side in ("holds", "fails"):
            told = {circle(i / 64, j / 64) >= 0 for i, j in cell.corners}
            assert told == {side == "holds"}
    assert found.right() == (40, 40)


def test_a_border_that_is_wrong_is_told_by_fresh_points():
    """The sentence holds elsewhere than where the grid found it: its check must say so."""
    surveyor = StandIn(circle)
    explorer = Explorer("planted", [()], surveyor, SETTINGS, SPENDING, FINE, 1e6)
    explorer._check = lambda: None
    explorer.run()
    surveyor.inside = lambda across, up: circle(across - 0.25, up)
    Explorer._check(explorer)
    judged, right = explorer.found.right()
    assert judged == 40 and right < 0.95 * judged
    assert explorer.found.right_interval()[1] < 0.95


def island(across, up):
    """A border that the first grid sees, and an island that it does not."""
    return max(0.17 - math.hypot(across - 0.625, up - 0.625), 0.3 - across)


def test_an_island_that_the_first_grid_misses_is_found_by_trying_random_places():
    found = [explored(island, name=str(number))[0] for number in range(10)]
    seen = [one for one in found if one.grids[()].at(0.625, 0.625) == "holds"]
    # It has an eighth of the side that it is not on: (1 - 1/8)^20 of the sets of 20 miss it.
    assert len(seen) >= 8
    for one in seen:
        assert one.share() == pytest.approx(0.3 + math.pi * 0.17**2, abs=0.02)
        assert one.right() == (40, 40)


def test_an_island_that_is_not_found_is_told_by_fresh_points(monkeypatch):
    monkeypatch.setattr(Explorer, "_try", lambda self: False)
    found = [explored(island, name=name)[0] for name in "abc"]
    assert all(one.grids[()].at(0.625, 0.625) == "fails" for one in found)
    assert sum(right for _, right in (one.right() for one in found)) < 3 * 40


def test_a_budget_that_ends_leaves_a_wider_border_and_says_so():
    found, surveyor = explored(circle, budget_s=150)
    assert surveyor.spent_s <= 150
    (grid,) = found.grids.values()
    assert grid.width() > 1 / 64
    # The first grid of the first facet is always had.
    nothing, _ = explored(circle, budget_s=1, facets=(("a",), ("b",)))
    assert list(nothing.grids) == [("a",)] and nothing.left_out == [("b",)]


def test_only_places_within_the_noise_are_replicated():
    calm, still = explored(circle)
    assert max(calm.noise.values()) == 0
    # Those from which the noise is learnt have replicates, no others.
    assert sorted(still.runs.values())[-4:] == [1, 3, 3, 3]
    found, noisy = explored(circle, noise=0.02)
    assert found.noise[()] == pytest.approx(0.04, rel=0.01)
    replicated = {place for place, count in noisy.runs.items() if count == 3}
    # One run alone reads 0.02 too little; within 0.04 of the border it is not believed.
    off = {place: abs(circle(place.across, place.up) - 0.02) for place in noisy.runs}
    near = {place for place in off if off[place] < 0.0399}
    assert near <= replicated and len(near) > 10
    assert sum(off[place] > 0.0401 for place in replicated) <= SETTINGS.noise_points
    assert found.share() == pytest.approx(math.pi * 0.3**2, abs=0.01)
    # The noise of a mean of three is by their root the less.
    told = {(p.across * 64, p.up * 64): abs(circle(p.across, p.up)) for p in replicated}
    nodes = told.keys() & found.grids[()].found.keys()
    unsure = {node for node in nodes if told[node] < 0.04 / math.sqrt(3)}
    assert unsure == nodes & found.grids[()].unsure and 10 < len(unsure) < len(nodes)


def test_a_verdict_that_a_hair_changes_is_on_the_border(monkeypatch):
    """Nothing is left to chance here: only places beside it tell that there is no verdict."""

    def hair(across, up):
        return across - 0.7 + 0.1 * math.sin(3000 * across)

    monkeypatch.setattr(Explorer, "_try", lambda self: False)
    found, _ = explored(hair, halvings=2, offset=0.001)
    assert found.grids[()].at(0.65, 0.5) == "border" and found.grids[()].at(0.75, 0.5) == "border"
    judged, right = found.right()
    assert judged == 40 and right >= 38


def test_where_all_replicates_are_one_nothing_is_unsure():
    """On the bound itself, yet no other run says otherwise: a tie that nothing breaks holds."""
    found, _ = explored(lambda across, up: min(0.0, 0.5 - across), noise=0.0)
    assert found.grids[()].at(0.2, 0.5) == "holds" and found.share() == pytest.approx(0.5, abs=0.02)
    found, _ = explored(lambda across, up: min(0.0, 0.5 - across), noise=0.02)
    assert found.grids[()].at(0.2, 0.5) == "border" and found.grids[()].at(0.9, 0.5) == "fails"


def test_a_threshold_is_told_where_every_line_has_one():
    slope, _ = explored(lambda across, up: across - 0.4 - 0.2 * up)
    found = threshold(slope.grids[()], 0)
    assert found.above
    assert (found.lowest, found.highest) == pytest.approx((0.4, 0.6), abs=0.02)
    assert threshold(explored(circle)[0].grids[()], 0) is None
    assert to_border(slope.grids[()], 0.9, 0.5, 0) == pytest.approx(0.5, abs=0.02)


def test_a_path_is_that_of_the_first_tcp_flow():
    document = minimal_scenario()
    link = document["links"][0] | {"rate_bps": 2e6, "delay_s": 0.025}
    link["queue_ab"] = {"kind": "droptail", "limit_bytes": 20800}
    link["loss_ab"] = {"kind": "random", "probability": 0.01}
    tcp = {
        "kind": "tcp",
        "congestion_control": "newreno",
        "segment_bytes": 1000,
        "initial_window_segments": 2,
        "delayed_ack_segments": 1,
        "minimum_rto_s": 0.2,
        "initial_rto_s": 1.0,
    }
    own = {k: v for k, v in document["flows"][0].items() if k not in ("rate_bps", "packet_bytes")}
    document |= {"links": [link], "flows": [own | tcp]}
    path = path_of(Scenario.model_validate(document))
    assert (path.rate_bps, path.rtt_s, path.packet_bytes) == (2e6, 0.05, 1040)
    assert path.bdp_packets == pytest.approx(2e6 * 0.05 / 8 / 1040)
    assert path.queue_packets == 20 and path.loss == pytest.approx(0.01)


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
    ratio = cubic_response(law, path(rtt_s=1.0, loss=1e-5)) / cubic_response(
        law, path(rtt_s=1.0, loss=1e-6)
    )
    assert ratio == pytest.approx(10**-0.75)
    # Near one product BBR takes all, in deep buffers about a half.
    bdp = path().bdp_packets
    assert ware(law, path(queue_packets=bdp)) == 1.0
    deep = ware(law, path(queue_packets=8 * bdp))
    assert 0.4 < deep < 0.55 < 0.8 < ware(law, path(queue_packets=1.5 * bdp))


def test_every_map_fits_its_study_and_all_five_papers_have_some():
    names = map_names(ROOT)
    assert len(names) >= 12
    assert {load_map(ROOT, name).study for name in names} == {
        *("dzivhani", "kapadia", "liang_shen", "nishitha", "saxena")
    }
    assert load_mapping(ROOT).tiers.keys() == {"quick", "paper", "deep"}


@pytest.fixture
def wrong(tmp_path):
    """Return what writes a changed map and says what is wrong with it."""
    for name in ("studies", "tiers", "config.yaml", "mapping.yaml"):
        (tmp_path / "configs").mkdir(exist_ok=True)
        (tmp_path / "configs" / name).symlink_to(ROOT / "configs" / name)
    base = yaml.safe_load((ROOT / "configs/maps/kapadia_buffer_for_full_link.yaml").read_text())

    def problem(change):
        document = yaml.safe_load(yaml.safe_dump(base))
        change(document)
        path = tmp_path / "configs/maps" / f"{base['id']}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        with pytest.raises(InputError) as told:
            check_map(tmp_path, base["id"])
        return str(told.value)

    return problem


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
        (lambda m: m["sentence"]["test"]["of"].update(experiment="duos"), "duos"),
        (lambda m: m["sentence"]["test"]["of"].update(metric="thruput"), "thruput"),
        (lambda m: m.update(engines=["ns4"]), "engines"),
        (lambda m: m.update(budget=3), "budget"),
        (lambda m: m["theory"][0].update(axis="rate"), "no axis"),
    ],
)
def test_a_wrong_file_is_told_by_field_and_remedy(wrong, change, words):
    told = wrong(change)
    assert "kapadia_buffer_for_full_link" in told and words in told
