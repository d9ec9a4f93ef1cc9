"""What another user left in the project's folder, and what root's simulators may not see."""

import os

import pytest
from replication.run import folder
from replication.run.process import network_is_isolated
from replication.study.errors import InputError


@pytest.fixture
def refused(monkeypatch):
    """Let nobody write the paths in it: root, who runs the tests, may write all."""
    paths = set()
    allowed = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path not in paths and allowed(path, mode))
    return paths


@pytest.mark.parametrize("name", [".snakemake/log", "data/reproduced/logs/x.log", "reports"])
def test_what_another_user_left_is_named_with_what_helps(name, tmp_path, refused, monkeypatch):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    folder.require_writable(tmp_path)
    refused.add(path)
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(InputError, match=rf"{name}: belongs to .*: run `sudo chown -R 12345 "):
        folder.require_writable(tmp_path)


def test_a_folder_of_ours_that_cannot_be_written_is_named(tmp_path, refused):
    (tmp_path / "reports").mkdir()
    refused.add(tmp_path / "reports")
    with pytest.raises(InputError, match=r"reports: cannot be written; make it writable"):
        folder.require_writable(tmp_path)


@pytest.mark.skipif(
    os.geteuid() != 0 or not network_is_isolated(), reason="root's simulators lose its privileges"
)
def test_root_in_a_closed_folder_of_another_is_told_the_cause(tmp_path):
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    os.chown(project.parent, 12345, 12345)
    project.parent.chmod(0o700)
    with pytest.raises(InputError, match=r"home: is open to 12345 alone.*: run as 12345, `chmod"):
        folder.require_readable_without_privileges(project)
    project.parent.chmod(0o711)
    folder.require_readable_without_privileges(project)
