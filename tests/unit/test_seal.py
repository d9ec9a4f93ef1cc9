"""Seals: what was built is what runs."""

import pytest
from replication.errors import InputError
from replication.launcher import Launch, make_runtime
from replication.seal import NAME, check_kernels, check_seal, seal, whole_or_unsealed

from tests.unit.test_container import ROOT


@pytest.fixture
def built(tmp_path):
    """Return the folder of a sealed program."""
    for name in ("replicate-ns3", "version", "main.o"):
        (tmp_path / name).write_bytes(b"x" * 1000)
    seal(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["replicate-ns3", "version"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_changed_file_is_not_run(built, name, damage):
    make_runtime(ROOT, Launch("native", "ns3", built / "replicate-ns3"), built).close()
    path = built / name
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flip" else content[:500])
    with pytest.raises(InputError, match=f"{name}: is not what was built .* run again"):
        make_runtime(ROOT, Launch("native", "ns3", built / "replicate-ns3"), built)


def test_what_lies_deeper_is_sealed_too(built):
    (built / "program").mkdir()
    (built / "program" / "reader.py").write_text("x")
    seal(built)
    (built / "program" / "reader.py").write_text("y")
    with pytest.raises(InputError, match=r"program/reader\.py: is not what was built"):
        check_seal(built)


@pytest.mark.parametrize("content", [b"", b"no seal\n", b"\xff\0  \xff\0\n", b"0  " + b"n" * 999])
def test_a_damaged_seal_is_a_broken_one(built, content):
    assert whole_or_unsealed(built).is_file()
    (built / NAME).write_bytes(content)
    assert not whole_or_unsealed(built).exists()


def test_what_a_compiler_leaves_is_not_sealed(built):
    (built / "main.o").unlink()
    (built / ".temporary").touch()
    check_seal(built)


def test_what_has_no_seal_is_taken_as_it_is(built):
    (built / NAME).unlink()
    (built / "replicate-ns3").write_bytes(b"y")
    check_seal(built)


def test_a_damaged_kernel_leaves_the_cache_and_a_whole_one_stays(tmp_path):
    kernels = [tmp_path / key for key in ("aaaa", "bbbb")]
    for kernel in kernels:
        kernel.mkdir()
        (kernel / "linux").write_bytes(b"kernel")
        (kernel / "release").write_text("6.1")
    assert list(check_kernels(tmp_path)) == []
    assert all((kernel / NAME).is_file() for kernel in kernels)
    (kernels[1] / "linux").write_bytes(b"kermel")
    (said,) = check_kernels(tmp_path)
    assert "bbbb was damaged" in said
    assert (kernels[0] / "linux").is_file() and not (kernels[1] / "linux").exists()
    # Built anew, it is sealed anew.
    (kernels[1] / "linux").write_bytes(b"kernel")
    assert list(check_kernels(tmp_path)) == []
    check_seal(kernels[1])
