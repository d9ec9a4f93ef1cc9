"""What is wrong in a document is one line with its file and line, whoever finds it."""

import re
import shutil
import sys

import pytest
from replication.base import environment
from replication.base.errors import InputError
from replication.base.files import write_text
from replication.cli.main import main
from replication.design.new_study import example

from tests.unit.conftest import ROOT

STUDY, NUMBERS = "configs/studies/tiny/study.yaml", "data/published/tiny.csv"
FINDINGS, REGION = "configs/studies/tiny/findings.yaml", "configs/regions/tiny_region.yaml"
EXPLANATIONS = "configs/explanations/tiny.yaml"
PACKAGES, TRACES = "workflow/engines/packages.yaml", "data/published/traces.yaml"
TEXTS = {
    FINDINGS: """\
findings:
  - text: It falls by {fall}.
    chart: delays~throughput_bps
    facts:
      fall:
        ours:
          kind: value
          of: {experiment: delays, metric: throughput_bps, where: {delay: d10}}
          expect: {at_least: 1.0}
  - text: Up to {from} packets.
    facts:
      from: {region: tiny_region, engine: ns2, at: 20, gives: from}
""",
    EXPLANATIONS: """\
study: tiny
score: cells
cpu_budget_s: 100.0
held_out: {rows: {"1": [d100]}, reason: The last row.}
stages: [{rows: {"1": [d10, d50]}}]
causes:
  - id: buffer
    title: Another buffer
    reason: It may be.
    source: The manual.
    added: {date: 2026-11-22, results: before}
    suggested_by: document
    outside_ledger: A test.
    levels:
      - {key: small, set: {parameters: {buffer_packets: 10}}}
""",
    REGION: """\
id: tiny_region
title: It falls
study: tiny
own_claim:
  id: tiny_region
  quote: It falls.
  place: Section 3
  reading: The throughput is above 1 Mbit/s.
  test: {kind: value, of: {experiment: delays, metric: throughput_bps, where: {delay: [d10]}},
    expect: {at_least: 1.0e6}}
keep:
  delays: {delay: [d10]}
reason: One delay.
axes:
  - {id: rate, title: Rate, range: {low: 1.0e6, high: 1.0e7}, set: {parameters: {rate_bps: $value}}}
  - {id: buffer, title: Buffer, range: {low: 5, high: 50, log: true, whole: true},
    set: {parameters: {buffer_packets: $value}}}
engines: [ns2]
cpu_budget_s: 100.0
""",
}
SERIES = f"opportunities_ab: {{file: data/published/lte.xz, sha256: {'0' * 64}}}"
NO_FILE = "link bottleneck: opportunities_ab: data/published/lte.xz: No such file .*give the path"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with one study, which has findings, explanations and a region."""
    root = tmp_path_factory.mktemp("project")
    (root / "configs").mkdir()
    for path in (ROOT / "configs").glob("*.yaml"):
        shutil.copy(path, root / "configs")
    shutil.copytree(ROOT / "configs/tiers", root / "configs/tiers")
    study, numbers = example(ROOT)
    texts = TEXTS | {STUDY: study.replace("id: example", "id: tiny", 1), NUMBERS: numbers}
    texts |= {name: (ROOT / name).read_text(encoding="utf-8") for name in (PACKAGES, TRACES)}
    for name, text in texts.items():
        write_text(root / name, text)
    return root


@pytest.fixture
def validate(project, monkeypatch, capsys):
    """Return a function that validates the project with one file changed: code, and the error."""
    monkeypatch.chdir(project)
    changed = {}

    def run(file=STUDY, change=lambda text: text):
        path = project / file
        before = changed.setdefault(path, path.read_bytes() if path.exists() else None)
        write_text(path, change((before or b"").decode()))
        monkeypatch.setattr(sys, "argv", ["replicate", "validate"])
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code, capsys.readouterr().err

    yield run
    for path, content in changed.items():
        path.unlink() if content is None else path.write_bytes(content)


def refused(validate, file, change, named=None):
    """Return the only line of an error, which begins with a file and a line of it."""
    code, error = validate(file, change)
    assert code == 2 and error.count("\n") == 1, error
    place = re.match(r"error: (\S+), line (\d+): ", error)
    assert place and place[1] == (named or file), error
    assert len(error) < 700 and not re.search(r"[^\s/]{130}", error), error
    return int(place[2]), error


def line_of(text, words):
    return text[: text.index(words)].count("\n") + 1


def test_the_project_of_these_tests_is_valid(validate):
    assert validate() == (0, "")


@pytest.mark.parametrize("content", ["", "# nothing\n", "- 1\n", "words\n"])
@pytest.mark.parametrize(
    "file",
    [STUDY, FINDINGS, EXPLANATIONS, REGION, PACKAGES, TRACES, "configs/studies/tiny/claims.yaml",
     "configs/studies/tiny/changes.yaml", "configs/sensitivity.yaml", "configs/tiers/quick.yaml"],
)  # fmt: skip
def test_a_document_that_is_no_mapping_is_refused(validate, file, content):
    assert "it must have keys, such as" in refused(validate, file, lambda _: content)[1]


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        # Found when templates are filled, at the value that the template takes.
        (STUDY, "times: 0.001", "times: 1.0e+9", "links.bottleneck.delay_s: .*less than"),
        (STUDY, "rate_bps: {value: 10.0e6", "rate_bps: {value: -1.0", "rate_bps: .*got -1.0"),
        (STUDY, "a: source", "a: sorce", "node: 'sorce' .*nearest: source"),
        (STUDY, "$buffer_packets}", "$bufer_packets}", "nearest: .buffer"),
        (STUDY, "        start_s: 0.0", "        strat_s: 0.0", "nearest: start_s"),
        (STUDY, "        start_s: 0.0", "        start_s: soon", "flow1: start_s: .*got 'soon'"),
        (STUDY, "repeat: 2", "repeat: many", "repeat must be"),
        (STUDY, "[source, sink]", "[source, sink, alone]", "node 'alone' has no link"),
        (STUDY, "times: 0.001", "times: 1.0e+308", "a number is too large"),
        (STUDY, "quick: [10, 100]", "quick: [20, 100]", "quick: 20 is none of the values"),
        (STUDY, "          a: so", f"          {SERIES}\n          a: so", NO_FILE),
        # References from one part of a document to another, and between documents.
        (STUDY, "metric: throughput_bps\n", "metric: throughput\n", "'throughput' .*nearest: thr"),
        (STUDY, "{experiment: delays,", "{experiment: dellays,", "'dellays' is unknown"),
        (STUDY, "row_factor: delay", "row_factor: dealy", "'dealy' is unknown"),
        (STUDY, "over: delay", "over: rate", "over: 'rate' is unknown"),
        (STUDY, "* $segment_bytes", "* $segment_byte", "nearest: .segment_bytes"),
        (FINDINGS, "delay: d10", "delay: d11", "fact fall: .*level of delay: 'd11' is unknown"),
        (FINDINGS, "chart: delays", "chart: delay", "chart: experiment: 'delay'"),
        (FINDINGS, "region: tiny_region", "region: tinyregion", "region: 'tinyregion'"),
        (FINDINGS, "at: 20", "at: 60", "at: is 60; it must lie on the axis, 5 to 50"),
        (FINDINGS, "gives: from", "gives: share", "gives: Input should be 'from'"),
        (FINDINGS, ", gives: from", "", "a region needs engine, at and gives"),
        (FINDINGS, "metric: throughput_bps", "metric: rate", "metric: 'rate' is unknown"),
        (EXPLANATIONS, "[d10, d50]", "[d10, d55]", "rows.1: row: 'd55' is unknown"),
        (EXPLANATIONS, "{buffer_packets: 10", "{bufer: 10", "parameter: 'bufer'"),
        (REGION, "where: {delay", "where: {dealy", "factor of delays: 'dealy' is unknown"),
        (REGION, "  delays: {delay: [d10]}", "  delays: {delay: [d10$x]}", "delay: .d10.x"),
        (REGION, "study: tiny", "study: tny", "study: 'tny' is unknown"),
        (REGION, "{low: 5,", "{low: 5.0e-324,", "too far apart"),
        (REGION, "{buffer_packets: $value", "{bufer: $value", "parameter: 'bufer'"),
        (REGION, "at_least: 1.0e6", "at_least: 0", "bounds above zero"),
        # What no run can meet.
        (STUDY, "at_most: -1.0}", "at_least: 1.5}", "1.5 is beyond .*from -1 to 1"),
        (FINDINGS, "at_least: 1.0", "atleast: 1.0", "atleast: no such key; nearest: at_le"),
        (FINDINGS, "{at_least: 1.0}", "{published: 1.0, facto: 2.0}", "facto: .*nearest: factor"),
        # Other kinds of values.
        (STUDY, "unit: ms", "unit: [ms]", "unit: Input should be"),
        (STUDY, "aggregate: sum\n", "aggregate: som\n", "got 'som'"),
        (PACKAGES, "  version: 2.35", "  versoin: 2.35", "versoin: no such key; nearest: version"),
        (TRACES, "  commit:", "  comit:", "comit: no such key; nearest: commit"),
        ("configs/tiers/quick.yaml", "levels: quick", "levels: few", "got 'few'"),
        ("configs/tiers/quick.yaml", "count: 5", "count: 4", "4 runs are too few for a verdict"),
        ("configs/config.yaml", "tier:", "teir:", "teir: no such key; nearest: tier"),
    ],
)  # fmt: skip
def test_an_error_names_its_line(validate, project, file, old, new, words):
    text = (project / file).read_text(encoding="utf-8")
    line, error = refused(validate, file, lambda text: text.replace(old, new, 1))
    assert line == line_of(text, old), error
    assert re.search(words, error), error


def test_a_missing_number_and_a_missing_cell_are_named_by_their_lines(validate):
    line, error = refused(validate, NUMBERS, lambda text: text.replace("1,d50", "1,d55"))
    assert line == 3 and "row: 'd55' is unknown" in error
    drop = lambda text: "".join(text.splitlines(keepends=True)[:3])  # noqa: E731
    line, error = refused(validate, NUMBERS, drop, named=STUDY)
    assert f"row d100, column throughput: has no number in {NUMBERS}" in error


def test_a_file_separated_by_semicolons_is_refused(validate):
    _, error = refused(validate, NUMBERS, lambda text: text.replace(",", ";"))
    assert "semicolons" in error


def test_an_outlier_in_a_column_is_refused_by_its_line(validate):
    line, error = refused(validate, NUMBERS, lambda text: text.replace("9800000", "98000000"))
    assert line == 2 and "in line 3 it is 1e+06 times" in error


def test_a_flow_without_a_path_is_refused(validate):
    def cut_off(text):
        text = text.replace("[source, sink]", "[source, sink, island, beach]")
        text = text.replace("destination: sink", "destination: island")
        wire = "        - {id: w, a: island, b: beach, rate_bps: 1e6, delay_s: 0, "
        wire += "queue_ab: {kind: droptail, limit_packets: 1}, "
        wire += "queue_ba: {kind: droptail, limit_packets: 1}}\n"
        return text.replace("      monitors:", wire + "      monitors:")

    _, error = refused(validate, STUDY, cut_off)
    assert "destination 'island' cannot be reached from 'source'" in error


def test_a_problem_in_an_anchor_is_reported_once(validate):
    def share(text):
        text = text.replace("queue_ab: {kind", "queue_ab: &q {kin", 1)
        return re.sub(r"queue_ba: .*", "queue_ba: *q", text, count=1)

    _, error = refused(validate, STUDY, share)
    assert error.count("kin") <= 2, error


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("configs/studies/tiny/claims.yml", "rename it to claims.yaml"),
        ("configs/studies/other/study.yml", "study.yml: is not read"),
        ("configs/regions/other.yml", "rename it to other.yaml"),
        ("configs/explanations/tny.yaml", "there is no study 'tny' (nearest: tiny)"),
        ("data/published/old.csv", "there is no study 'old'"),
    ],
)
def test_a_file_that_nothing_reads_is_refused(validate, project, file, words):
    (project / file).parent.mkdir(exist_ok=True)
    code, error = validate(file, lambda _: "a: 1\n")
    assert code == 2 and error.startswith(f"error: {file}: ") and words in error


LAUGHS = "x0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


def with_parameters(join):
    """Return a change that adds nine levels of parameters, each with nine references."""

    def change(text):
        levels = [f"  r{n}: {{value: {join([f'$r{n + 1}'] * 9)}, published: {{place: p}}}}\n"
                  for n in range(9)]  # fmt: skip
        last = "  r9: {value: 1000000000000, published: {place: p}}\n"
        text = text.replace("\nparameters:\n", "\nparameters:\n" + "".join(levels) + last)
        return text.replace("[source, sink]", "[$r0, source, sink]")

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: LAUGHS + text, "values; use fewer aliases"),
        (with_parameters(lambda names: f"[{', '.join(names)}]"), "references and copies give more"),
        (with_parameters(lambda names: f'"{" * ".join(names)}"'), "the number is too large"),
        (lambda text: f"x: {'[' * 100_000}{']' * 100_000}\n{text}", "levels deep"),
        (lambda text: "- " * 100_000, "levels deep"),
        (lambda text: f"x: &a [*a]\n{text}", "contains itself"),
        (lambda text: text.replace("id: tiny", f"id: {'x' * 40_000}"), "id: String should match"),
        (lambda text: text.replace("kind: tcp", f"kind: {'x' * 40_000}"), "Input tag"),
        (lambda text: text.replace("[source,", f"['{'$a * ' * 9000}',"), "unknown parameter"),
        (lambda text: text.replace("10.0e6", "1" * 40_000), "1000 digits"),
    ],
    ids=str.split("aliases references products lists blocks itself id tag sum digits"),
)
def test_a_huge_or_deep_document_is_refused_and_not_quoted(validate, change, words):
    assert words in refused(validate, STUDY, change)[1]


def test_brackets_in_text_do_not_count_as_nesting(validate):
    assert validate(STUDY, lambda text: f"# {'[' * 200}\n{text}") == (0, "")


@pytest.mark.parametrize("content", ["", "- 1\n", "words\n", "core: 5\n"])
def test_an_invalid_list_of_variables_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    write_text(tmp_path / "configs/environment.yaml", content)
    with pytest.raises(InputError, match=r"environment\.yaml, line 1: .*core"):
        environment.core()
