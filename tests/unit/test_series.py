"""A series of opportunities in a file gives its numbers, or one line on what is wrong."""

import lzma

import pytest
from replication.base.errors import InputError
from replication.base.files import digest_of
from replication.engines.catalogue import NS3
from replication.engines.input_file import input_text
from replication.study.link import SeriesFile
from replication.study.scenario import Scenario
from replication.study.series import read_series

from tests.unit.conftest import minimal_scenario

TEXT = b"0\n0\n1\n20\n"


def series(root, name, content):
    """Write a file; return what a scenario says of it."""
    (root / name).write_bytes(content)
    return SeriesFile(file=name, sha256=digest_of(content))


def test_a_file_of_opportunities_gives_the_same_input_as_a_list(tmp_path):
    document, texts = minimal_scenario(), []
    plain, packed = series(tmp_path, "s", TEXT), series(tmp_path, "s.xz", lzma.compress(TEXT))
    for given in (plain, packed, [0, 0, 1, 20]):
        document["links"][0]["opportunities_ab"] = given
        text = input_text(Scenario.model_validate(document), NS3, tmp_path)
        texts.append([line for line in text.splitlines() if line.startswith("opportunities")])
    assert texts == [["opportunities_ab at_ms 0,0,1,20"]] * 3


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("s", b"0\n1.5\n", "s, line 2: '1.5'"),
        ("s", b"0\n\n3\n", "s, line 2: ''"),
        ("s", b"-1\n", "s, line 1: '-1'"),
        ("s", b"12345678901\n", "s, line 1: '12345678901'"),
        ("s", b"5\n4\n", "s, line 2: 4 follows 5"),
        ("s", b"0\n0\n", "above 0"),
        ("s", b"", "s: "),
        ("s.xz", TEXT, "s.xz: xz"),
        ("s.xz", lzma.compress(TEXT)[:-9], "s.xz: xz"),
        ("s.xz", lzma.compress(TEXT) * 2, "s.xz: xz"),
        ("s.xz", lzma.compress(bytes(12_000_000)), "s.xz: has more than 11000000"),
    ],
)
def test_an_invalid_file_of_opportunities_is_refused_by_its_line(tmp_path, name, content, words):
    with pytest.raises(InputError) as caught:
        read_series(series(tmp_path, name, content), tmp_path)
    assert words in str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_a_file_with_a_different_hash_is_refused(tmp_path):
    given = series(tmp_path, "s", TEXT)
    (tmp_path / "s").write_bytes(b"1\n")
    with pytest.raises(InputError, match=f"its sha256 is {digest_of(b'1' + bytes([10]))}, not "):
        read_series(given, tmp_path)
