"""Bad documents, files and options, by the thousand: an error of ours or nothing, never another."""

import functools
import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from replication.cli import main as cli
from replication.plan.config import load_config, study_ids
from replication.plan.study_check import check_study
from replication.study.errors import InputError, describe
from replication.study.files import read_model
from replication.study.scenario import Scenario
from replication.study.storage.table import PUBLISHED_COLUMNS
from replication.study.study import Study

from tests.faults.conftest import ROOT, number
from tests.faults.hostile import (
    COUNTS,
    MARK,
    NOT_FINITE,
    NUMBERS,
    STRINGS,
    anything,
    mutate,
    scalars,
)
from tests.unit.conftest import CLAIM, study_document
from tests.unit.test_models import minimal_scenario

CASES = number("CASES", 1500)


def many(share):
    """Return settings for a share of the cases, the same ones every time."""

    def decorate(function):
        made = settings(
            deadline=None,
            max_examples=max(10, int(CASES * share)),
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(function)
        return seed(20260107)(made)

    return decorate


@st.composite
def mutated(draw, document):
    """Return a document changed in one to four places."""
    changed = deepcopy(document)
    for _ in range(draw(st.integers(1, 4))):
        mutate(draw, changed)
    return changed


@pytest.mark.parametrize(
    ("name", "model", "document", "share"),
    [
        ("scenario", Scenario, minimal_scenario(), 0.45),
        ("study", Study, study_document(), 0.25),
    ],
)
def test_no_document_breaks_a_model(name, model, document, share, tally):
    @many(share)
    @given(document=mutated(document) | anything)
    def run(document):
        with tally.trial("inputs", f"model-{name}", f"bad documents as a {name}") as trial:
            found = trial.attempt(lambda: model.model_validate(document), ValidationError)
            if isinstance(found, ValidationError):
                said = describe(found)
                assert said.isprintable(), "more than a line, or the terminal's own signs"
            else:
                # What is accepted is whole: it can be written, read back, and is the same.
                again = model.model_validate(json.loads(found.model_dump_json()))
                trial.right(again.model_dump_json() == found.model_dump_json())

    run()


def test_no_setting_breaks_the_configuration(tally, tmp_path):
    keys = yaml.safe_load((ROOT / "configs/config.yaml").read_text())
    settings_ = st.dictionaries(st.sampled_from([*keys, *STRINGS]), scalars | anything, max_size=4)

    @many(0.1)
    @given(overrides=settings_)
    def run(overrides):
        with tally.trial("inputs", "config", "bad settings laid over the configuration") as trial:
            read = functools.partial(load_config, ROOT / "configs/config.yaml", overrides)
            if isinstance(found := trial.attempt(read, InputError), InputError):
                assert any(word in str(found) for word in ("config", *overrides))

    run()


def test_no_published_numbers_break_their_check(tally, tmp_path):
    path = tmp_path / "synthetic.csv"
    study = Study.model_validate(study_document() | {"claims": [CLAIM]})
    good = '1,slow,throughput,bit/s,800000,0.80,"Table 1"\n'
    header = ",".join(PUBLISHED_COLUMNS) + "\n"
    fields = st.sampled_from([*map(str, NUMBERS), *map(str, NOT_FINITE), *STRINGS, "1", "slow"])
    rows = st.lists(fields | st.text(max_size=8), min_size=5, max_size=9).map(",".join)
    text = st.lists(rows | st.just(good), max_size=4).map("\n".join)

    @many(0.12)
    @given(body=text.map(lambda t: header + t) | st.text(max_size=60), raw=st.booleans())
    def run(body, raw):
        data = body.encode("utf-8", "surrogatepass")
        path.write_bytes(data[: len(data) // 2] + b"\xff" if raw and len(data) % 7 == 0 else data)
        with tally.trial("inputs", "published", "bad files of published numbers") as trial:
            found = trial.attempt(lambda: check_study(study, path), InputError)
            assert not isinstance(found, InputError) or path.name in str(found)

    run()


#: Commands whose work is small where there is no project; all others are behind the same options.
COMMANDS = [(name,) for name in ("plan", "run", "render", "program", "release")]
COMMANDS += [("step", name) for name in ("design", "simulate", "collect", "evaluate", "merge")]
COMMANDS += [("step", name) for name in ("fetch-wheel", "provenance", "agreement")]
COMMANDS += [("step", name) for name in ("notebook", "page", "assemble")]
OPTIONS = ("--tier", "--studies", "--engines", "--ns3-version", "--runtime", "--data", "--output")
OPTIONS += ("--root", "--batch", "--store", "--flows", "--keys", "--lock", "--engine", "--help")


def test_no_command_line_gives_a_traceback(tally, tmp_path, monkeypatch, capsys):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    words = st.sampled_from(OPTIONS) | st.sampled_from(STRINGS) | st.text(max_size=12)
    # Names below the folder alone: what a user asks to be written elsewhere is written there.
    words = words.map(lambda word: word.replace("/", "_"))

    @many(0.03)
    @given(command=st.sampled_from(COMMANDS), more=st.lists(words, max_size=6))
    def run(command, more):
        monkeypatch.setattr(sys, "argv", ["replicate", *command, *more])
        with tally.trial("inputs", "command-line", "bad options on the command line") as trial:
            with pytest.raises(SystemExit) as left:
                cli.main()
                sys.exit(0)
            trial.exited(left.value.code)
            said = capsys.readouterr().err
            assert left.value.code == 0 or said.strip(), "it failed without a word"
            assert not list(tmp_path.rglob(f"{MARK}*")), "a word of the command line was run"
            assert [p.name for p in tmp_path.iterdir()] == ["project"]

    run()


@pytest.mark.parametrize("kind", ["study", "scenario", "config", "published"])
def test_no_bytes_that_a_fuzzer_finds_break_a_reader(kind, tally, tmp_path):
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python")
    runs = max(200, int(CASES * 0.05))
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    seeds = {
        "study": yaml.safe_dump(study_document()),
        "scenario": json.dumps(minimal_scenario()),
        "config": (ROOT / "configs/config.yaml").read_text(),
        "published": (ROOT / f"data/published/{study_ids(ROOT)[0]}.csv").read_text()[:600],
    }
    (corpus / "seed").write_text(seeds[kind])
    fuzzer = Path(__file__).with_name("fuzz_reader.py")
    options = (f"-runs={runs}", "-seed=20260107", "-timeout=30", f"-artifact_prefix={tmp_path}/")
    done = subprocess.run(
        [sys.executable, fuzzer, kind, tmp_path / "counts", *options, corpus],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    tried, right, refused = COUNTS.unpack((tmp_path / "counts").read_bytes())
    tally.add(
        *("inputs", f"fuzz-{kind}", f"bytes as a {kind}, by atheris"),
        **{"tried": tried, "right": right, "refused": refused, "wrong": tried - right - refused},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert tried == right + refused >= runs


def test_a_reader_that_breaks_would_be_seen(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("a: [")
    with pytest.raises(InputError, match=r"x\.yaml"):
        read_model(path, Study)
