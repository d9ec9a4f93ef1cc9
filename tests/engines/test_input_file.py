"""Input files: read by name, and invalid ones give exit code 2, a one-line error and no output."""

import json
from random import Random

import pytest
from measurements.bench import read_result, write_input
from measurements.scenarios import cbr, single_link

#: Where a line of ns-3's input file is in the JSON document of the others.
PLACES = {
    "input": lambda document: document,
    "run": lambda document: document["run"],
    "link": lambda document: document["links"][0],
    "queue_ab": lambda document: document["links"][0]["queue_ab"],
    "flow": lambda document: document["flows"][0],
}
#: A line, a name in it, its new value (None: without it), and the expected message.
FAULTS = [
    ("input", "version", 3, "version 3"),
    ("input", "engine", "other", "engine other"),
    ("run", "seed", None, "seed: is missing"),
    ("link", "rate_bps", "inf", "rate_bps"),
    ("queue_ab", "kind", "sfq", "queue_ab.kind"),
    ("queue_ab", "surplus", 1, "queue_ab.surplus: no such"),
    ("flow", "congestion_control", "qreno", "'qreno'"),
]


def set_value(text, word, name, value):
    """Return an input file with another value of a name."""
    if text.startswith("{"):
        document = json.loads(text)
        members = PLACES[word](document)
        if value is None:
            del members[name]
        else:
            members[name] = value
        return json.dumps(document)
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith(f"{word} "))
    words = lines[at].split()
    members = dict(zip(words[1::2], words[2::2], strict=True)) | {name: value}
    pairs = [f"{key} {given}" for key, given in members.items() if given is not None]
    lines[at] = " ".join([word, *pairs])
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("word", "name", "value", "fact"), FAULTS)
def test_an_invalid_input_file_is_refused_in_one_line_and_earlier_results_stay(
    bench, tmp_path, word, name, value, fact
):
    scenario = single_link([bench.tcp("t"), cbr("c", 1e5)], duration_s=1)
    given, output = write_input(tmp_path, bench.name, scenario), tmp_path / "out"
    output.mkdir()
    (output / "flows.csv").write_text("earlier")
    given.write_text(set_value(given.read_text(), word, name, value))
    done = bench.invoke("--input", given, "--output", output)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    assert fact in done.stderr
    assert [path.read_text() for path in output.iterdir()] == ["earlier"]


def shuffled(text, random):
    """Return an input file whose names are in another order."""

    def reordered(value):
        if isinstance(value, list):
            return [reordered(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        return {key: reordered(value[key]) for key in random.sample(list(value), len(value))}

    if text.startswith("{"):
        return json.dumps(reordered(json.loads(text)))
    lines = []
    for line in text.splitlines():
        word, *words = line.split()
        pairs = [f"{name} {value}" for name, value in zip(words[::2], words[1::2], strict=True)]
        lines.append(" ".join([word, *random.sample(pairs, len(pairs))]))
    return "\n".join(lines) + "\n"


def test_the_order_of_names_in_the_input_does_not_change_results(bench, tmp_path):
    flows = [bench.tcp("t"), cbr("c", 1e5)]
    results = []
    for number, queue in enumerate(bench.traits.queues):
        given = write_input(tmp_path / f"{number}", bench.name, single_link(flows, queue=queue))
        for order in ("written", "shuffled"):
            output = tmp_path / f"{number}" / order
            done = bench.invoke("--input", given, "--output", output)
            assert done.returncode == 0, done.stderr
            results.append(read_result(output))
            given.write_text(shuffled(given.read_text(), Random(number)))
    for written, other in zip(results[::2], results[1::2], strict=True):
        assert (written.flows, written.series) == (other.flows, other.series)
