"""Regions recover planted surfaces, report a missing contour, and refuse invalid files."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from replication.base.errors import InputError
from replication.design.config import load_study
from replication.engines.path import TcpPath, bbr_share, cubic_window, reno_window
from replication.explore.regions.exploration import (
    Compared,
    Exploration,
    PointResult,
    as_clause,
    replicate_point,
)
from replication.explore.regions.region_model import (
    RegionSettings,
    load_region,
    region_names,
    region_runs,
)
from replication.explore.regions.region_result import check_region
from replication.explore.regions.region_rows import Shares
from replication.explore.regions.space import Point, Space, contour, laws_at_paper
from replication.explore.regions.surface import CELLS, GRID, REACH, Bounds
from replication.study.claim_model import EquivalenceTest, Quantity, ShareTest, TrendTest

from tests.unit.conftest import ROOT, quantity

TIER = {"budget_factor": 1, "first_points": 8, "validation_points": 40}
SPENDING = {"batch_share": 0.2, "validation_share": 0.5, "enough": 0.03, "tiers": {"paper": TIER}}
SETTINGS = RegionSettings(seed=1, replicates=2, replicate_offset=0.005, **SPENDING)
ABOVE_ONE = Bounds(low=0.0)


class Planted:
    """A planted logarithm of the quantity, with noise; one CPU second per run."""

    def __init__(self, truth, noise, bounds, seed, alike):
        self.truth, self.noise, self.seed, self.alike = truth, noise, seed, alike
        self.compared = SimpleNamespace(bounds=bounds)
        self.space = SimpleNamespace(values=lambda point: (point.x, point.y))
        self.runs = {}

    @property
    def costs(self):
        return SimpleNamespace(spent_s=float(len(self.runs)))

    def cost_s(self, trials):
        return float(len(set(trials) - self.runs.keys()))

    def sample(self, trials):
        for point, number in trials:
            at = replicate_point(point, number, SETTINGS.replicate_offset)
            seed = [self.seed, int(1e4 * point.x), int(1e4 * point.y), number]
            value = self.truth(at.x, at.y) + self.noise * np.random.default_rng(seed).normal()
            state = self.alike(at.x, at.y)
            self.runs[point, number] = PointResult(at, value, cannot_differ=state)
        return {trial: self.runs[trial] for trial in trials}


def never(x, y):
    return False


def explored(truth, noise=0.0, bounds=ABOVE_ONE, budget_s=160.0, panels=((),), seed=0, alike=never):
    sampler, spending = Planted(truth, noise, bounds, seed, alike), SETTINGS.tiers["paper"]
    exploration = Exploration(f"planted {seed}", panels, sampler, SETTINGS, spending, budget_s)
    exploration.run()
    return exploration


def truths(truth):
    return np.array([truth(x, y) for x, y in GRID]).reshape(CELLS, CELLS)


def slope(x, y):
    return 0.8 * (x - 0.3 - 0.4 * y)


def cliff(x, y):
    """A cliff, then a plateau at the threshold, where runs hold or fail by chance."""
    return 0.6 if x < 0.4 + 0.2 * y else 0.0


def covered(exploration):
    return np.mean([checked.covered for checked in exploration.validation])


def test_a_smooth_surface_is_recovered_within_its_band():
    inside = []
    for seed in range(4):
        exploration = explored(slope, noise=0.05, seed=seed)
        (surface,) = exploration.surfaces.values()
        shares = surface.shares()
        assert shares.undecided < 0.2 and shares.cannot_differ == 0
        assert shares.holds + shares.fails + shares.undecided == pytest.approx(1)
        known, truth = surface.probability(), truths(slope)
        assert (truth[known > 0.95] > 0).mean() > 0.98 and (truth[known < 0.05] < 0).mean() > 0.98
        # The true contour: x = 0.3 + 0.4 y.
        on = np.array([(0.3 + 0.4 * y, y) for y in np.linspace(0.02, 0.98, 25)])
        mean, sd = surface.predict(on)
        inside.append(np.mean(np.abs(mean) <= REACH * sd))
        assert len(exploration.validation) == 40 and covered(exploration) >= 0.8
    assert np.mean(inside) >= 0.8
    # Most points are close to the contour.
    chosen = [point for point, _ in exploration.results][2 * TIER["first_points"] :]
    near = np.mean([abs(slope(point.x, point.y)) < 0.1 for point in chosen])
    assert near > 1.5 * (np.abs(truths(slope)) < 0.1).mean()


def test_a_cliff_next_to_a_noisy_plateau_is_recovered_and_the_plateau_stays_undecided():
    truth = truths(cliff)
    explorations = [explored(cliff, noise=0.2, seed=seed) for seed in range(3)]
    for exploration in explorations:
        known = exploration.surfaces[()].probability()
        assert (known[truth > 0] > 0.95).mean() > 0.8
        assert ((known >= 0.05) & (known <= 0.95))[truth == 0].mean() > 0.5
        assert (known[truth > 0] >= 0.05).all()
    assert np.mean([covered(exploration) for exploration in explorations]) >= 0.8


@pytest.mark.parametrize(
    ("truth", "noise", "bounds", "side"),
    [
        (lambda x, y: 0.5 + 0.2 * x, 0.05, ABOVE_ONE, "holds"),
        (lambda x, y: 0.5 + 0.2 * x, 0.05, Bounds(high=0.0), "fails"),
        # A tie fails a test for a difference, and passes a test for equivalence.
        (lambda x, y: 0.0, 0.0, ABOVE_ONE, "fails"),
        (lambda x, y: 0.0, 0.0, Bounds(-0.2, 0.2), "holds"),
    ],
)
def test_a_claim_that_holds_or_fails_everywhere_has_no_contour(truth, noise, bounds, side):
    exploration = explored(truth, noise, bounds, budget_s=100.0)
    (surface,) = exploration.surfaces.values()
    assert getattr(surface.shares(), side) == 1
    mean, _ = surface.predict(GRID)
    steps = [float(x) for x, _ in GRID[:CELLS]]
    ends = [end for end in bounds.ends() if math.isfinite(end)]
    assert not any(contour(mean.reshape(CELLS, CELLS) - end, steps) for end in ends)
    assert (surface.model is None) == (noise == 0)
    # Nothing is uncertain: no runs beyond the first and the validation points.
    assert len(exploration.results) == 2 * TIER["first_points"]


def test_ties_next_to_a_slope_fail_as_a_plateau():
    exploration = explored(lambda x, y: max(0.0, 0.5 * (x - 0.6)))
    known = exploration.surfaces[()].probability()
    assert (known[:, : CELLS // 2] < 0.05).mean() > 0.9 and (known[:, -3:] > 0.95).mean() > 0.8


@pytest.mark.parametrize("bounds", [ABOVE_ONE, Bounds(-0.2, 0.2)])
def test_where_alternatives_cannot_differ_a_claim_neither_holds_nor_fails(bounds):
    """Ties would fail a test for a difference, and pass one for equivalence."""
    exploration = explored(
        lambda x, y: 0.0 if x < 0.5 else 0.6, bounds=bounds, alike=lambda x, y: x < 0.5
    )
    shares = exploration.shares()
    assert shares.cannot_differ == pytest.approx(0.5, abs=0.1)
    assert shares.holds + shares.fails == pytest.approx(0.5, abs=0.1)
    assert shares.undecided >= shares.cannot_differ
    assert shares.holds + shares.fails + shares.undecided == pytest.approx(1)
    assert np.mean([checked.state_predicted for checked in exploration.validation]) > 0.8
    assert {checked.cannot_differ for checked in exploration.validation} == {True, False}


def test_nothing_more_is_run_where_alternatives_cannot_differ():
    exploration = explored(lambda x, y: 0.0, alike=lambda x, y: True)
    assert len(exploration.results) == 2 * TIER["first_points"]
    assert exploration.shares() == Shares(holds=0, fails=0, undecided=1, cannot_differ=1)


def test_a_small_budget_leaves_more_undecided_and_skips_panels():
    short, long = (explored(slope, 0.2, budget_s=budget_s) for budget_s in (60.0, 300.0))
    assert short.sampler.costs.spent_s <= 62 and long.sampler.costs.spent_s <= 302
    assert long.shares().undecided < short.shares().undecided
    two_panels = explored(slope, budget_s=20.0, panels=(("a",), ("b",)))
    assert list(two_panels.surfaces) == [("a",)]
    assert {point.panel for point, _ in two_panels.results} == {("a",)}


def test_a_contour_is_where_the_sign_changes():
    steps = [(n + 0.5) / 40 for n in range(40)]
    circle = [[0.3 - math.hypot(x - 0.5, y - 0.5) for x in steps] for y in steps]
    pieces = contour(circle, steps)
    ends = [(a, b) for a, b, _, _ in pieces] + [(c, d) for _, _, c, d in pieces]
    assert all(math.hypot(x - 0.5, y - 0.5) == pytest.approx(0.3, abs=1e-3) for x, y in ends)
    assert sum(math.hypot(a - c, b - d) for a, b, c, d in pieces) == pytest.approx(1.88, abs=0.02)
    assert contour([[1, 2], [3, 4]], [0, 1]) == []


def side(variant):
    return Quantity(experiment="e", metric="throughput_bps", where={"variant": variant})


def test_tests_of_a_share_or_equivalence_become_a_ratio_with_bounds():
    sides = {"left": side("a"), "right": side(["b", "c"])}
    above = ShareTest(kind="share", relation="above", factor=1.02, expect={"at_least": 1}, **sides)
    test, bounds = as_clause(above)
    assert (test.reduce, bounds) == ("minimum", Bounds(low=math.log(1.02)))
    below = above.model_copy(update={"relation": "below", "factor": 0.98})
    test, bounds = as_clause(below)
    assert (test.reduce, bounds) == ("maximum", Bounds(high=math.log(0.98)))
    alike = EquivalenceTest(kind="equivalence", margin=0.2, **sides)
    assert as_clause(alike)[1] == Bounds(math.log(0.8), math.log(1.2))
    with pytest.raises(InputError, match="'trend'"):
        as_clause(TrendTest(kind="trend", of=side("a"), over="x", expect={"at_least": 0.9}))


def test_the_quantity_of_a_claim_is_the_logarithm_of_its_ratio(world):
    def read(test):
        study = world.claim(test)
        return Compared(study.claims[0]).values(study, world.results(study, flows=flows))

    def flows(variant, **_):
        return {"throughput_bps": {"vegas": 3e5, "reno": 2e5, "cubic": 0.0}.get(variant, 1e5)}

    def ratio(left, right, least):
        sides = {"left": quantity(variant=left), "right": quantity(variant=right)}
        return {"kind": "ratio", **sides, "expect": {"at_least": least}}

    assert set(read(ratio("vegas", "reno", 1.2)).values()) == {math.log(1.5)}
    # Zero counts as a thousandth of the threshold, not as minus infinity.
    (least, *_) = read(ratio("cubic", "reno", 1.2)).values()
    assert least == pytest.approx(math.log(1.2 / 1000))
    both = {"kind": "all", "parts": [ratio("vegas", "reno", 1.2), ratio("vegas", "reno", 2)]}
    # Of two clauses the one closest to failing decides: 1.5 against 2.
    assert next(iter(read(both).values())) == pytest.approx(math.log(0.75))


def test_a_region_may_name_one_clause_of_its_claim():
    study = load_study(ROOT, "kapadia")
    first, second = (
        Compared(Space(load_region(ROOT, f"kapadia_bbr_{name}"), study, "ns3").claim).bounds
        for name in ("beside_cubic", "unlike_reno")
    )
    assert (math.exp(first.low), math.exp(second.low)) == pytest.approx((0.67, 1.5))


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        # 104857 bytes over 1 Mbit/s x 4 x 0.132 ms; no drawn delay, and nothing that is fixed.
        ("kapadia_bbr_beside_reno", (1588.7, 0.000528)),
        ("kapadia_random_loss", (None, 0.000528)),
        # 1000 packets behind the paper's 20 Mbit/s, not behind the region's 5.
        ("dzivhani_senders_beside_new_reno", (23.519, 0.005)),
        # A level sets the paper's rate.
        ("saxena_highspeed_above_new_reno", (1.2e6, 0.02)),
        ("liang_shen_vegas_latency", (-52.115, 49)),
        ("nishitha_vegas_delay", (20, 2e6)),
    ],
)
def test_the_papers_own_point_is_read_from_the_study(region, expected):
    model = load_region(ROOT, region)
    space = Space(model, load_study(ROOT, model.study), model.engines[0])
    for value, wanted in zip(space.paper, expected, strict=True):
        assert value == (wanted if wanted is None else pytest.approx(wanted, rel=1e-4))


def test_the_law_of_bbr_is_evaluated_at_the_papers_own_point():
    study = load_study(ROOT, "kapadia")
    region = load_region(ROOT, "kapadia_bbr_beside_reno")
    (law,) = laws_at_paper(Space(region, study, "linux"))
    # 1/2 + 1/(2 x 1589) + 4/69.9 of the link, less 1.04 s of probing in 10 s.
    assert law.share == pytest.approx((0.5 + 1 / (2 * 1588.7) + 4 / 69.905) * 0.8961, rel=1e-3)


def test_a_path_is_that_of_the_first_tcp_flow_at_a_point():
    point, study = Point(("reno",), 0.5, 0.5), load_study(ROOT, "kapadia")
    lossy, buffered = (
        Space(load_region(ROOT, f"kapadia_{name}"), study, "ns3")
        for name in ("random_loss", "buffer_for_full_link")
    )
    path_there = lossy.path(point)
    # The router's clock is off by up to 0.02 %.
    assert path_there.rate_bps == pytest.approx(1e6, rel=2e-4)
    assert (path_there.segment_bytes, path_there.packet_bytes) == (1448, 1500)
    assert (path_there.loss, path_there.rtt_s) == pytest.approx(lossy.values(point), rel=1e-4)
    assert path_there.queue_packets == pytest.approx(104857 / 1500)
    # The middle of the buffer's axis is one product.
    path_there = buffered.path(point)
    bdp_bytes = path_there.rate_bps * path_there.rtt_s / 8
    assert path_there.bdp_packets == pytest.approx(bdp_bytes / 1500)
    assert path_there.queue_packets == pytest.approx(path_there.bdp_packets, rel=1e-3)


def path(**changes):
    base = {"rate_bps": 1e7, "rtt_s": 0.1, "segment_bytes": 1448, "packet_bytes": 1500}
    return TcpPath(**base | {"queue_packets": 100.0, "loss": 0.01, "active_s": 100.0} | changes)


def test_laws_match_the_formulas_of_their_sources():
    # 1448 * 8 * C / (0.1 * sqrt(0.01)) of 10 Mbit/s.
    assert path().share(reno_window(0.01, 1.2)) == pytest.approx(1448 * 8 * 1.2 / 0.01 / 1e7)
    assert reno_window(0.04) == pytest.approx(reno_window(0.01) / 2)
    # Small products: Reno's window is the larger; large ones: CUBIC's, of p to the power of 3/4.
    assert cubic_window(0.1, 0.01) == pytest.approx(math.sqrt(150))
    assert cubic_window(1.0, 1e-6) / cubic_window(1.0, 1e-5) == pytest.approx(10**0.75)
    # Near one BDP BBR takes everything, in deep buffers about half.
    bdp = path().bdp_packets
    assert bbr_share(path(queue_packets=bdp)) == 1.0
    deep = bbr_share(path(queue_packets=8 * bdp))
    assert 0.4 < deep < 0.55 < 0.8 < bbr_share(path(queue_packets=1.5 * bdp))


def test_regions_are_explored_for_chosen_studies_on_available_engines():
    runs = [run.split("/") for run in region_runs(ROOT, ["ns3"], ["kapadia"])]
    assert ["kapadia_random_loss", "ns3"] in runs and {engine for _, engine in runs} == {"ns3"}
    assert {load_region(ROOT, name).study for name, _ in runs} == {"kapadia"}


def test_all_five_papers_have_a_region():
    assert len({load_region(ROOT, name).study for name in region_names(ROOT)}) == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["axes"].pop(0), "axes: List should have at least 2 items"),
        (
            lambda m: (m.pop("own_claim"), m.update(claim="c99")),
            "c99.*there are c01",
        ),
        (lambda m: (m.pop("own_claim"), m.update(claim="c07")), "c07 cannot be tested"),
        (lambda m: m.pop("reason"), "say why"),
        (lambda m: m["axes"][0]["range"].update(low=20.0), "low must be below high"),
        (lambda m: m["axes"][0].pop("of_bdp"), "exactly one of set and of_bdp"),
        (lambda m: m["laws"][0].update(axis="rate"), "laws: axis: 'rate' is unknown"),
        (lambda m: m["axes"][0]["of_bdp"].update(parameter="bufer"), "bufer"),
        (lambda m: m["own_claim"]["test"]["of"].update(metric="thruput"), "thruput"),
        (lambda m: m["traits"][0].update(entry="no_such"), "traits: 'no_such' is unknown"),
        (lambda m: m.update(test=2), "has 1, not 2"),
    ],
)
def test_an_invalid_region_file_is_named_with_its_field(tmp_path, change, words):
    (tmp_path / "configs/regions").mkdir(parents=True)
    for name in ("studies", "tiers", "config.yaml", "engine_differences.yaml"):
        (tmp_path / "configs" / name).symlink_to(ROOT / "configs" / name)
    file = "configs/regions/kapadia_buffer_for_full_link.yaml"
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    change(document)
    (tmp_path / file).write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(InputError, match=rf"kapadia_buffer_for_full_link(.|\n)*{words}"):
        check_region(tmp_path, "kapadia_buffer_for_full_link")
