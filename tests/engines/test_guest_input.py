"""The guest of the linux engine reads its input by name, and names what it refuses."""

import itertools
import random
import sys

import pytest
from measurements.bench import write_input
from measurements.scenarios import cbr, linux_tcp, listed, single_link

from tests.engines.engine_bench import TRAITS
from tests.workflow.project import ROOT

FLOWS = [linux_tcp("t", "vegas"), cbr("c", 2e5)]


@pytest.fixture(scope="module")
def launcher():
    """Return the launcher's modules that make and run a guest's input."""
    folders = [ROOT / "workflow/engines" / name for name in ("linux/launcher", "common")]
    sys.path[:0] = map(str, folders)
    try:
        import guest_input
        import input_reader
        import machine
    finally:
        del sys.path[:2]
    return guest_input, input_reader, machine


@pytest.fixture
def lines(launcher, tmp_path):
    """Return a function: the lines of the guest's input of two flows through a queue."""
    guest_input, input_reader, _ = launcher

    def of(queue):
        scenario = single_link(FLOWS, duration_s=1, queue=queue, loss=listed(1))
        changes = {"changes": [{"at_s": 0.5, "delay_s": 0.01}], "opportunities_ba": [1]}
        scenario["links"][0] |= changes
        path = write_input(tmp_path, "linux", scenario)
        text = guest_input.make_guest_input(input_reader.read_input_file(path, "linux"))
        return text.splitlines()

    return of


@pytest.fixture
def run(launcher, linux_program, tmp_path):
    """Return a function that boots the kernel on lines: the results, or why it refuses them."""
    machine = launcher[2]

    def boot(lines):
        text = "\n".join(lines) + "\n"
        boot = machine.Boot(guest_input=text, timer_hz=250, seed=1, words=[], dctcp=False)
        try:
            return machine.run_machine(linux_program.parent, boot, tmp_path)
        except machine.MachineError as error:
            return str(error)

    return boot


def shuffled(line):
    word, *words = line.split()
    pairs = list(zip(words[::2], words[1::2], strict=True))
    random.Random(1).shuffle(pairs)
    return " ".join([word, *itertools.chain(*pairs)])


@pytest.mark.parametrize("queue", TRAITS["linux"].queues, ids=lambda queue: queue["kind"])
def test_the_guest_reads_names_in_any_order(lines, run, queue):
    ordered = lines(queue)
    results = run(ordered)
    assert results.endswith("\nend\n")
    assert run([shuffled(line) for line in ordered]) == results


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("run", "mtu"),
        ("parameter", "value"),
        ("link", "taps"),
        ("route", "quick_ack"),
        ("tcp", "sack"),
        ("cbr", "payload_bytes"),
        ("monitor", "direction"),
        ("queue", "delay_ns"),
        ("queue", "target_us"),
        ("listed", "data_packets"),
        ("opportunities", "at_ms"),
        ("change", "loss"),
    ],
)
def test_the_guest_refuses_an_unknown_or_missing_name(lines, run, word, name):
    given = lines(next(q for q in TRAITS["linux"].queues if q["kind"] == "codel"))
    place = next(n for n, line in enumerate(given) if line.startswith(f"{word} "))
    where = f"input, line {place + 1}: {word}: {name}"
    broken = given[place].replace(f" {name} ", f" {name}x ")
    assert run([*given[:place], broken, *given[place + 1 :]]) == f"{where}: missing"
    broken = f"{given[place]} {name}x 1"
    assert run([*given[:place], broken, *given[place + 1 :]]).startswith(f"{where}x: unknown")
