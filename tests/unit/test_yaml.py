"""YAML: the values of JSON, merge keys, and errors that name file and line."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replication.report.charts.figure import file_of, name_of
from replication.study.errors import InputError
from replication.study.files import read_model, read_yaml
from replication.study.study import Study

from tests.unit.conftest import study_document


def read(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return read_yaml(path)


@pytest.mark.parametrize("text", ["yes", "010", "0x10", "1:30", "1_000", ".inf", "2017-08-01"])
def test_what_is_no_json_value_is_text(tmp_path, text):
    assert read(tmp_path, f"x: {text}\n") == {"x": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: key 'a' is given twice"),
        ("a: !!python/name:os.system x", "line 1: could not determine a constructor"),
        ("a: 1\n2: x", "line 2: key '2' is not text"),
        ("a: [1\nb: 2", "line 2: did not find"),
    ],
)
def test_what_is_no_document_is_refused_by_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert "x.yaml: " in str(caught.value) and str(caught.value).isprintable()


def test_a_wrong_field_is_named_with_its_line(tmp_path):
    path = tmp_path / "x.yaml"
    text = json.dumps(study_document(), indent=1).replace('"mid",', '"Mid One",')
    line = text[: text.index("Mid One")].count("\n") + 1
    path.write_text(text)
    with pytest.raises(
        InputError, match=rf"x\.yaml, line {line}: experiments\.0\.factors\."
    ) as got:
        read_model(path, Study)
    assert "(got 'Mid One')" in str(got.value)


@settings(deadline=None, max_examples=50)
@given(raw=st.binary(max_size=200))
def test_no_bytes_give_a_traceback(raw, tmp_path_factory):
    path = tmp_path_factory.mktemp("bytes") / "s.yaml"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        read_model(path, Study)


parts = st.lists(st.text("ab1_-.~+ 𝒯", max_size=4), min_size=1, max_size=4)


@given(parts, parts)
def test_other_parts_give_another_name_that_is_safe_in_files_and_pages(one, other):
    assert (name_of(*one) == name_of(*other)) == (one == other)
    assert re.fullmatch(r"[A-Za-z0-9_.,=~+-]*", name_of(*one))
    long = [file_of(name_of("s" * 64, "e" * 64, *["k" * 99] * 2, *more)) for more in (one, other)]
    assert (long[0] == long[1]) == (one == other) and len(long[0]) <= 240
