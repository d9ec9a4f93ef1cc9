"""Merge keys in YAML: what stands beside one overrides it; a key given twice is still refused."""

import pytest
from replication.study.errors import InputError
from replication.study.files import read_yaml


def test_an_entry_beside_a_merge_key_overrides_what_it_brings(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("base: &b {x: 1, y: 2}\nnext: &n {<<: *b, x: 3}\nlast: {<<: *n, y: 4}\n")
    assert read_yaml(path) == {
        "base": {"x": 1, "y": 2},
        "next": {"x": 3, "y": 2},
        "last": {"x": 3, "y": 4},
    }


def test_a_key_given_twice_beside_a_merge_key_is_refused(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("base: &b {x: 1}\nnext: {<<: *b, y: 2, y: 3}\n")
    with pytest.raises(InputError, match="'y' is given twice in the mapping at line 2"):
        read_yaml(path)
