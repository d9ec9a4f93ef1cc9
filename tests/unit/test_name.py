"""Names: what is written for different things never has the same one."""

import re

from hypothesis import given
from hypothesis import strategies as st
from replication.report.charts.figure import file_of, name_of

words = st.lists(st.text("ab1_-.~+ 𝒯", max_size=4), min_size=1, max_size=4)


@given(words, words)
def test_other_parts_give_another_name(one, other):
    assert (name_of(*one) == name_of(*other)) == (one == other)


@given(st.lists(st.text(), min_size=1))
def test_a_name_is_safe_in_files_and_pages(parts):
    assert re.fullmatch(r"[A-Za-z0-9_.,=~+-]*", name_of(*parts))


def test_a_long_name_is_a_file_that_can_be_written_and_stays_apart(tmp_path):
    names = [name_of("s" * 64, "e" * 64, f"{'factor' * 10}=k,{'other' * 12}={end}") for end in "12"]
    files = [f".{file_of(name)}.html.12345678" for name in names]
    for file in files:
        (tmp_path / file).touch()
    assert len(list(tmp_path.iterdir())) == 2
    assert file_of("short") == "short"
