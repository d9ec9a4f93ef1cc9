"""What is fetched, shipped and trusted: pins and hashes, licences, secrets."""

import json
import lzma
import re
import subprocess

import pytest
from replication.engines.wheel import fetch_wheel
from replication.study.errors import RunError

from tests.faults.conftest import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock", "workflow/profiles/slurm/requirements.lock")
PACKAGE = re.compile(r"^[A-Za-z0-9._-]+==\S+", re.MULTILINE)
#: Keys, tokens and passwords as their issuers write them. A key stands by itself: an image in
#: base64 holds its letters by chance.
SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|(?<![A-Za-z0-9+/])AKIA[0-9A-Z]{16}(?![A-Za-z0-9+/])"
    r"|gh[pousr]_[A-Za-z0-9]{36}|xox[abprs]-[A-Za-z0-9-]{10,}|pypi-AgEI[A-Za-z0-9_-]{20,}|://[^/\s:@]+:[^/\s@]{3,}@"
)
#: Files that hold examples of such text: this one.
EXAMPLES = {"tests/faults/test_supply.py"}


@pytest.mark.parametrize("lock", [*LOCKS, *sorted(
    str(p.relative_to(ROOT)) for p in (ROOT / "workflow/engines/ns3/wheels").glob("*.lock")
)])  # fmt: skip
def test_every_locked_package_is_pinned_by_hash(lock, tally):
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    with tally.trial("supply", "pins", "lock files with every package pinned by hash") as trial:
        lines = [line for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
        assert lines
        free = [line for line in lines if not re.match(r"\s*\S+==\S+.*--hash=sha256:", line)]
        trial.right(not free, free)


def test_nothing_is_installed_without_its_hash():
    """Every pip that fetches asks for hashes, but for the one that installs the project itself."""
    where = [ROOT / "Makefile", ROOT / "containers/install", *(ROOT / "workflow").rglob("*.py")]
    words = re.compile(r"pip (?:install|download)\b|-m pip install|\$\(PIP\)|\"pip\", \"download\"")
    for path in where:
        text = path.read_text().replace("\\\n", " ")
        for match in words.finditer(text):
            after = text[match.start() : match.start() + 400]
            line_ = text[text.rfind("\n", 0, match.start()) : text.find("\n", match.end())]
            defines = "PIP =" in line_ or "--no-build-isolation -e ." in line_
            assert defines or "--require-hashes" in after, f"{path.name}: {line_.strip()}"


def test_a_wheel_that_is_not_the_pinned_one_is_refused(tmp_path, tally):
    lock = tmp_path / "ns3.lock"
    pinned = next((ROOT / "workflow/engines/ns3/wheels").glob("3.44*.lock")).read_text()
    lock.write_text(re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", pinned))
    with tally.trial("supply", "wheel", "a downloaded wheel with another hash") as trial:
        with trial.refusal(RunError, "cannot be fetched"):
            fetch_wheel(lock, tmp_path / "out" / "ns3")
        assert not (tmp_path / "out" / "ns3").exists()


def test_every_package_has_a_licence_or_is_listed_without(tally):
    names = re.findall(
        r"^([A-Za-z0-9._-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    command = ["pip-licenses", "--format=json", "--with-system", "--packages", *names]
    with tally.trial("supply", "licences", "locked packages with their licence") as trial:
        rows = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        assert len(rows) == len(names)
        unknown = [row["Name"] for row in rows if row["License"] == "UNKNOWN"]
        # Snakemake's interfaces are MIT in their repositories and say nothing in their packages.
        others = [name for name in unknown if not name.startswith("snakemake-interface-")]
        trial.right(len(others) <= 3, others)
    tally.notes["licences"] = f"{len(rows)} in all; not stated: {', '.join(unknown)}"


def test_no_file_holds_a_secret(tally):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    with tally.trial("supply", "secrets", "files of the repository searched for secrets") as trial:
        found = []
        for name in set(listed.stdout.split("\n")[:-1]) - EXAMPLES:
            found += [f"{name}: {match[0]}" for match in SECRETS.finditer(readable(ROOT / name))]
        trial.right(not found, found)


def readable(path):
    """Return the text of a file, unpacked; of one that is not text what is printable of it.

    Of compressed bytes, some would look like anything.
    """
    content = path.read_bytes() if path.is_file() else b""
    if path.suffix == ".xz":
        content = lzma.decompress(content)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "\n".join(run.decode() for run in re.findall(rb"[\x20-\x7e]{8,}", content))


def test_a_secret_in_an_archive_would_be_found(tmp_path):
    path = tmp_path / "a.tar.xz"
    path.write_bytes(lzma.compress(b"\xff\x00" + b"see https://u:pass@h" + b"\x00\xfe"))
    assert SECRETS.search(readable(path))


@pytest.mark.parametrize(
    "text", ["-----BEGIN RSA PRIVATE KEY", "AKIA" + "A" * 16, "https://u:pass@h"]
)
def test_a_secret_would_be_found(text):
    assert SECRETS.search(text)
