"""The pipeline: what makes a rule run again, and what a user is told beforehand."""

import shutil
from pathlib import Path

import pytest
from replication.design import input_hashes, plan
from replication.design.pipeline import Pipeline

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def quick():
    return Pipeline.load(ROOT, {"tier": "quick"})


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a copy of the package, whose code is what is hashed."""
    package = shutil.copytree(input_hashes.PACKAGE, tmp_path / "replication")
    monkeypatch.setattr("replication.design.input_hashes.PACKAGE", package)
    input_hashes.code.cache_clear()
    yield package
    input_hashes.code.cache_clear()


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("study/scenario.py", {"simulate", "judge"}),
        ("design/design.py", {"simulate", "judge"}),
        ("compare/agreement.py", {"judge"}),
        ("report/templates/base.html", {"report"}),
        ("cli/main.py", set()),
    ],
)
def test_a_change_of_code_changes_the_keys_of_what_it_decides(copied, path, keys):
    before = input_hashes.code()
    (copied / path).open("a").write("\n")
    input_hashes.code.cache_clear()
    after = input_hashes.code()
    assert {
        key for key in input_hashes.Code._fields if getattr(before, key) != getattr(after, key)
    } == keys


def test_batches_are_named_by_the_code_that_decides_their_tables(quick, copied):
    settings = {"tier": "quick", "studies": "nishitha", "engines": "ns3"}
    before = set(Pipeline.load(ROOT, settings).batches)
    assert before <= set(quick.batches)
    (copied / "simulate/gather.py").open("a").write("\n")
    input_hashes.code.cache_clear()
    assert before.isdisjoint(Pipeline.load(ROOT, settings).batches)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A project whose plan is kept, and a function that loads it and says how often it was made."""
    for name in ("configs", "data/published"):
        shutil.copytree(ROOT / name, tmp_path / name)
    made = []
    make = plan.make_plan
    monkeypatch.setattr(plan, "make_plan", lambda *given: made.append(1) or make(*given))

    def load():
        settings = {"tier": "quick", "studies": "nishitha", "engines": ["ns3"]}
        return Pipeline.load(tmp_path, settings).plan, len(made)

    return tmp_path, load


def edited(path):
    path.open("a").write("\n")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("configs/studies/nishitha/claims.yaml", edited),
        ("configs/tiers/quick.yaml", edited),
        ("data/published/nishitha.csv", edited),
        (plan.KEPT, Path.unlink),
        (plan.KEPT, lambda path: path.write_bytes(path.read_bytes()[:1000])),
    ],
)
def test_a_plan_is_made_anew_if_what_decides_it_changed_or_it_is_damaged(kept, name, change):
    root, load = kept
    first, _ = load()
    assert load() == (first, 1)
    change(root / name)
    assert load()[1] == 2
    assert load()[1] == 2
