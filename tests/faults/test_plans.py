"""Plans that were altered, through the readers of the programs: taken or refused, never a crash."""

import json
import subprocess
from functools import partial
from itertools import product
from random import Random

from replication.engines.catalogue import NS2, NS3
from replication.engines.lowering import lower
from replication.study.scenario import Scenario

from tests.faults.conftest import ROOT, number
from tests.faults.hostile import STRINGS
from tests.faults.sanitized import ENVIRONMENT, SANITIZE
from tests.faults.test_programs import QUEUES, SHAPER
from tests.unit.test_lowering import READER, scenario

CASES = number("CASES", 5000) // 5
SOURCES = ROOT / "workflow" / "engines" / "ns3" / "src"
WORDS = ("-1", "nan", "inf", "1e999", "18446744073709551616", "4294967296", "1,,2", "none", "")
WORDS += tuple(text for text in STRINGS if "\0" not in text)


def mutated(plan, random):
    """Return a plan changed in one to three places: words, lines or characters."""
    for _ in range(random.randint(1, 3)):
        lines = plan.split("\n")
        at = random.randrange(len(lines))
        words = lines[at].split(" ")
        word = random.randrange(len(words))
        action = random.choice(["word", "word", "drop", "double", "line", "move", "cut", "flip"])
        if action == "cut":
            plan = plan[: random.randrange(len(plan) + 1)]
            continue
        if action == "flip" and plan:
            place = random.randrange(len(plan))
            plan = plan[:place] + chr(random.randrange(1, 300)) + plan[place + 1 :]
            continue
        if action == "word":
            words[word] = random.choice(WORDS)
        elif action == "drop":
            del words[word]
        elif action == "double":
            words.insert(word, words[word])
        lines[at] = " ".join(words)
        if action == "line":
            del lines[at]
        elif action == "move":
            lines.insert(random.randrange(len(lines)), lines[at])
        plan = "\n".join(lines)
    return plan


def plans(engine):
    """Yield a plan of each kind of queue, without and with what came later."""
    document = json.loads(scenario().canonical_json())
    for queue, shaped in product(QUEUES, (False, True)):
        document["links"][0] |= {
            "queue_ab": queue,
            "loss_ba": {"kind": "random", "probability": 0.1},
            "shaper_ab": SHAPER if shaped else None,
        }
        given = Scenario.model_validate(document)
        if not engine.refusal(given):
            yield lower(given, engine)


def write_cases(engine, folder):
    """Write altered plans; return their paths."""
    known, random = list(plans(engine)), Random(20261122)
    paths = []
    for case in range(CASES):
        paths.append(folder / f"{case}.txt")
        paths[-1].write_bytes(mutated(random.choice(known), random).encode("utf-8"))
    return paths


def test_no_plan_breaks_the_reader_of_ns3(tmp_path, tally):
    program = tmp_path / "read_plans"
    own = [str(ROOT / "tests" / "faults" / "read_plans.cpp"), str(SOURCES / "plan.cpp")]
    subprocess.run(
        ["g++", "-std=c++20", "-Wall", "-Wextra", *SANITIZE, f"-I{SOURCES}", "-o", program, *own],
        check=True,
    )
    paths = write_cases(NS3, tmp_path)
    done = subprocess.run(
        [program],
        input="".join(f"{path}\n" for path in paths).encode(),
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ends = [line.split(b" ")[0] for line in done.stdout.splitlines()]
    assert len(ends) == CASES and set(ends) == {b"read", b"refused"}
    title = "altered plans through the reader of replicate-ns3, under AddressSanitizer and UBSan"
    right = ends.count(b"read")
    tally.add("inputs", "plan-ns3", title, tried=CASES, right=right, refused=CASES - right)


def test_no_plan_breaks_the_reader_in_python(tmp_path, tally):
    title = "altered plans through the reader of the programs in Python"
    for path in write_cases(NS2, tmp_path):
        with tally.trial("inputs", "plan-python", title) as trial:
            read = partial(READER.read_plan, str(path), "ns2")
            found = trial.attempt(read, READER.InputError)
            if trial.ended == "refused":
                assert f"{path}: line " in str(found)
