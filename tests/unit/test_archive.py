"""Archives: the same bytes every time, and nothing but plain files comes out of them."""

import io
import lzma
import tarfile

import pytest
from replication.report import archive
from replication.report.archive import pack, unpack
from replication.study.errors import InputError

FILES = {"cells.csv": b"a,b\n", "results/saxena/flows.parquet": b"\0" * 5000}


def test_the_same_files_give_the_same_bytes_and_come_out_again():
    packed = pack(FILES)
    assert pack(dict(reversed(FILES.items()))) == packed
    assert unpack(packed) == FILES


def entry(name, kind=tarfile.REGTYPE, target="", size=0):
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, target, size
    return found


def packed_with(*entries):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:") as file:
        for found in (entry("cells.csv"), *entries):
            file.addfile(found)
    return lzma.compress(content.getvalue())


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (entry("claims.csv", tarfile.SYMTYPE, "cells.csv"), "'claims.csv' is no plain file"),
        (entry("claims.csv", tarfile.LNKTYPE, "cells.csv"), "'claims.csv' is no plain file"),
        (entry("claims.csv", tarfile.CHRTYPE), "'claims.csv' is no plain file"),
        (entry("claims.csv", tarfile.FIFOTYPE), "'claims.csv' is no plain file"),
        (entry("results", tarfile.DIRTYPE), "'results' is no plain file"),
        (entry("/etc/passwd"), "'/etc/passwd' has no plain relative name"),
        (entry("a/../../b"), "'a/../../b' has no plain relative name"),
        (entry("./a"), "'./a' has no plain relative name"),
        (entry("."), "'.' is a file and a folder"),
        (entry("cells.csv"), "'cells.csv' is there twice"),
        (entry("cells.csv/a"), "'cells.csv' is a file and a folder"),
        (entry("a\nb"), r"'a\nb' has no plain relative name"),
        (entry("claims.csv", size=10**10), "'claims.csv' claims 10000000000 bytes"),
        (entry("claims.csv", size=10**7), "unexpected end of data"),
    ],
)
def test_what_is_no_plain_file_is_refused_in_one_line(found, problem):
    with pytest.raises(InputError) as caught:
        unpack(packed_with(found))
    assert problem in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        (b"no archive", "is damaged"),
        (b"", "ends too early"),
        (pack(FILES)[:-20], "ends too early"),
        (pack(FILES) + b"more", "goes on after its end"),
        (lzma.compress(b"no tar" * 200), "is damaged"),
    ],
)
def test_what_is_no_archive_is_refused(packed, problem):
    with pytest.raises(InputError, match=problem):
        unpack(packed)


def test_an_archive_that_would_fill_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(archive, "LIMIT_BYTES", 4000)
    with pytest.raises(InputError, match=r"holds more than 0\.004 MB"):
        unpack(pack(FILES))
