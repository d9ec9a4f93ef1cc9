"""The guide's tables of keys: those of the models, with a meaning for each key."""

from pathlib import Path

import pytest
from replication.cli.key_table import MODELS, meanings, with_tables

GUIDE = Path(__file__).parents[2] / "configs" / "README.md"
#: What a template of a flow has beside its kind's own keys; the guide's own words say it.
OF_EVERY_FLOW = {"id", "source", "destination", "start_s", "stop_s", "kind"}


def test_the_guide_has_the_keys_as_the_models_have_them():
    text = GUIDE.read_text(encoding="utf-8")
    assert with_tables(text) == text, "run `replicate schemas`"


@pytest.mark.parametrize("name", MODELS)
def test_every_key_has_a_meaning_and_a_table(name):
    keys = set(MODELS[name].model_fields)
    if "Flow" in name:
        keys -= OF_EVERY_FLOW
    assert set(meanings(MODELS[name])) == keys
    assert f"<!-- keys: {name} -->" in GUIDE.read_text(encoding="utf-8")


def test_a_table_follows_its_model():
    found = with_tables("<!-- keys: CbrFlow -->\nold\n<!-- end -->\n")
    assert "| `rate_bps` * | bit/s |  | Of whole IP packets. |" in found
    assert "old" not in found
    found = with_tables("<!-- kinds: Queue -->\n<!-- end -->\n")
    assert "`limit_packets` *, `device_queue_packets` (1)" in found
