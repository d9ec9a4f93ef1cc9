"""A finished result folder made without a simulation, who reads its files, ways to alter them."""

import csv
import hashlib
import io
import json
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bench.bench import write_bench
from bench.cost_model import predictions
from bench.reliability import add_entries
from replication.compare.agreement_table import TABLES as AGREEMENT
from replication.compare.agreement_table import read_judged, write_agreement
from replication.compare.conformance import merge_conformance
from replication.judge.evaluate import QUANTITY_COLUMNS, merge
from replication.judge.registration import register
from replication.judge.verdict_table import read_verdicts
from replication.measure.results import Results
from replication.plan.config import load_study
from replication.report.notebooks.collection import open_collection
from replication.report.notebooks.notebook import to_html
from replication.report.pages.compared.conformance import conformance_view
from replication.report.parts.bench_model import read_bench
from replication.report.parts.reliability import Trials, read_reliability
from replication.report.parts.source import Source
from replication.run.gather import collect
from replication.run.simulate import read_batch
from replication.sensitivity.design import (
    read_costs,
    read_scenarios,
    read_sensitivity_design,
)
from replication.sensitivity.maps.account import read_account
from replication.sensitivity.maps.table import MAP_COLUMNS
from replication.sensitivity.robustness_rows import MADE_FROM, RobustnessRows, read_made_from
from replication.sensitivity.why.table import EXPLAINED_COLUMNS
from replication.sensitivity.why.table import NAME as EXPLANATION
from replication.study.report_page import BENCH_PAGE, RELIABILITY_PAGE
from replication.study.storage.parquet import read_parquet, write_parquet
from replication.study.storage.seal import NAME, RECORD, read_sealed, sealed, write_sealed
from replication.study.storage.table import CELL_COLUMNS, CLAIM_COLUMNS, read_rows, write_table

from tests.unit.test_bench import bench
from tests.unit.test_conformance import DOCUMENT, written

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "notebooks/fixture"
DATA = "data/reproduced"
EXECUTED = "reports/notebooks"
#: Its sensitivity is designed, and the one whose notebook is read.
EXPLORED = "nishitha"
TRACED = "kapadia"


@dataclass(frozen=True)
class Finished:
    """A project with results of every stage, as the stages' own writers leave them."""

    root: Path

    @property
    def data(self):
        """Return the folder of results."""
        return self.root / DATA

    def files(self):
        """Return every sealed file."""
        found = (self.root / folder for folder in (DATA, EXECUTED))
        records = sorted(path for folder in found for path in folder.rglob(f"*{RECORD}"))
        return [path.with_name(path.name.removesuffix(RECORD)) for path in records]


def make_finished(root):
    """Return a project whose results are the notebooks' fixture, and made-up ones of the rest."""
    for name in ("configs", "data/published"):
        shutil.copytree(ROOT / name, root / name)
    finished = Finished(root)
    data = finished.data
    for path in sorted(FIXTURE.rglob("*")):
        if path.is_file() and path.name != NAME:
            with sealed(data / path.relative_to(FIXTURE)) as target:
                target.write_bytes(path.read_bytes())
    studies = sorted(path.stem for path in (data / "design").glob("*.csv"))
    for study in studies:
        _make_batches(data, study)
        register(root, data, load_study(root, study))
    write_agreement(root, data, studies)
    written(data)
    _make_sensitivity(data)
    for notebook in sorted((ROOT / "notebooks").glob("homo*.ipynb")):
        name = f"{EXPLORED}.{notebook.name}"
        write_sealed(root / EXECUTED / name, notebook.read_text(encoding="utf-8"))
    write_bench(bench(), data / BENCH_PAGE.made_of)
    ends = {"tried": 3, "right": 2, "refused": 1, "wrong": 0}
    add_entries(data / RELIABILITY_PAGE.made_of, [Trials(id="x", part="faults", title="x", **ends)])
    return finished


def _make_batches(data, study):
    """Cut the results of a study into two batches."""
    flows, series = (
        read_parquet(data / f"results/{study}/{table}.parquet") for table in ("flows", "series")
    )
    scenarios = sorted(set(flows["scenario"].to_pylist()))
    for number in range(2):
        mine = scenarios[number::2]
        name = f"ns3-light-{zlib.crc32(f'{study} {number}'.encode()):08x}"
        for table, rows in (("flows", flows), ("series", series)):
            kept = pc.is_in(rows["scenario"], pa.array(mine))
            write_parquet(rows.filter(kept), data / f"batches/{name}.{table}.parquet")
        runs = [{"scenario": s, "cpu_s": 1.0 + i} for i, s in enumerate(mine)]
        usage = {"engine": "ns3", "engine_version": "3.44", "runs": runs}
        write_sealed(data / f"batches/{name}.usage.json", json.dumps(usage))


def _make_sensitivity(data):
    """Give a study's sensitivity a design of its own scenarios, and tables of some numbers."""
    folder = data / "sensitivity" / EXPLORED
    scenarios = json.loads((data / f"design/scenarios/{EXPLORED}.json").read_text())
    names = sorted(scenarios)
    run = {"experiment": "e", "point": "p", "levels": {"a": "b"}, "refusal": ""}
    point = {"kind": "default", "changed": "", "values": {"rate": 2.5}, "refusal": ""}
    points = [point | {"id": name, "runs": [run | {"scenario": name}]} for name in names]
    design = {"study": EXPLORED, "engine": "ns3", "cost_s": 9.5, "points": points}
    write_sealed(folder / "design.json", json.dumps(design))
    for number in range(3):
        mine = {name: scenarios[name] for name in names[number::3]}
        costs = {name: 0.5 + number for name in mine}
        batch = {"batch": f"{number}", "engine": "ns3", "costs_s": costs, "scenarios": mine}
        write_sealed(folder / f"batches/{number}.json", json.dumps(batch))
    table = read_parquet(data / f"results/{EXPLORED}/flows.parquet")
    for part in ("claims", "cells", "spread"):
        write_parquet(table, folder / f"{part}.parquet")
    write_sealed(folder / EXPLANATION, json.dumps({"study": EXPLORED, "null_p": 0.125}))
    row = dict.fromkeys(EXPLAINED_COLUMNS, "1.5")
    write_table(folder / "explained_cells.csv", [row], EXPLAINED_COLUMNS)
    write_sealed(folder / MADE_FROM, json.dumps({"engine": "ns3", "study": "0" * 64}))


def _results(finished, path):
    study = path.stem if "design" in path.parts else path.parent.name
    found = Results.load(finished.data, study)
    return found.design, found.flows, found.series, found.scenarios


def _collected(finished, path):
    target = finished.root / "collected.parquet"
    keys = ["engine", "scenario", "flow"]
    collect([path], target, keys + (["time_s", "link"] if ".series." in path.name else []))
    return pq.read_table(target).to_pandas()


def _merged(finished, path):
    target = finished.root / "merged"
    merge([path.parent], target)
    names = ("cells", "claims", "claim_flags", "own_data", "audit")
    texts = [(target / f"{name}.csv").read_text() for name in names]
    return texts, [read_verdicts(target / f"{name}.parquet") for name in ("cells", "claims")]


def _judged(finished, path):
    judged = read_judged(finished.root, finished.data, path.parent.name)
    return _merged(finished, path), repr(vars(judged))


def _conformance(finished, path):
    merge_conformance(DOCUMENT, ["ns3", "ns2"], finished.data)
    return _section(finished, path)


def _section(finished, path):
    return repr(conformance_view(Source(ROOT, finished.data, [], [], [], {})))


def _source(finished, path):
    found = Source.load(finished.root, finished.data)
    return found.cells, found.claims, repr(found.flags), found.audit, found.provenance


def _traces(finished, path):
    found = open_collection(str(finished.data), str(finished.root)).table(path.name)
    return found[found["study"] == TRACED]


def _robustness(finished, path):
    return vars(RobustnessRows.load(path.parent, path.parent.name))


def _batch_of_sensitivity(finished, path):
    engine, scenarios = read_batch(path)
    return engine, {name: scenario.canonical_json() for name, scenario in scenarios.items()}


def _design_of_sensitivity(finished, path):
    folder = path.parent
    return repr(read_sensitivity_design(folder)), read_scenarios(folder), read_costs(folder)


def _page(finished, path):
    target = finished.root / "page.html"
    to_html(path, target, "whose")
    return target.read_text(encoding="utf-8")


#: Patterns of files below the data folder, and the stages' own readers of them. The first that
#: matches is taken; what matches none is an error of the harness.
READERS = (
    ("design/*.csv", _results),
    ("design/scenarios/*.json", _results),
    ("results/*/*.parquet", _results),
    ("batches/*.parquet", _collected),
    ("batches/*.usage.json", lambda finished, path: repr(predictions(finished.data))),
    ("evaluation/*/quantities.csv", lambda finished, path: read_rows(path, QUANTITY_COLUMNS)),
    ("evaluation/*/audit.csv", _merged),
    ("evaluation/*/c*.csv", _merged),
    ("evaluation/*/vacuity.csv", _merged),
    ("evaluation/*/own_data.csv", _merged),
    ("evaluation/*/c*.parquet", _judged),
    ("agreement*.csv", lambda finished, path: read_rows(path, AGREEMENT[path.name])),
    ("trace_*", _traces),
    ("conformance/*.csv", _conformance),
    ("conformance*.csv", _section),
    ("cells.csv", lambda finished, path: read_rows(path, CELL_COLUMNS)),
    ("claims.csv", lambda finished, path: read_rows(path, CLAIM_COLUMNS)),
    ("cells.parquet", _source),
    ("claims.parquet", _source),
    ("audit.csv", _source),
    ("claim_flags.csv", _source),
    ("own_data.csv", _source),
    ("provenance.json", _source),
    ("sensitivity/*/explained_cells.csv", lambda _, path: read_rows(path, EXPLAINED_COLUMNS)),
    ("sensitivity/*/explanation.json", lambda finished, path: json.loads(read_sealed(path))),
    ("sensitivity/*/*.csv", _robustness),
    ("sensitivity/*/design.json", _design_of_sensitivity),
    ("sensitivity/*/batches/*.json", _batch_of_sensitivity),
    ("sensitivity/*/*.parquet", lambda finished, path: read_parquet(path).to_pandas()),
    ("sensitivity/*/made_from.json", lambda finished, path: read_made_from(path.parent)),
    ("maps.csv", lambda finished, path: read_rows(path, MAP_COLUMNS)),
    ("maps/*/*.json", lambda finished, path: read_account(path)),
    ("*.ipynb", _page),
    ("bench.json", lambda finished, path: repr(read_bench(finished.data))),
    ("reliability.json", lambda finished, path: repr(read_reliability(path))),
)


def pattern_of(finished, path):
    """Return the number of the kind of file that this is, in `READERS`."""
    base = finished.data if path.is_relative_to(finished.data) else finished.root / EXECUTED
    name = path.relative_to(base)
    for number, (pattern, _) in enumerate(READERS):
        if len(name.parts) == len(Path(pattern).parts) and name.match(pattern):
            return number
    raise AssertionError(f"nobody is known to read {name}")


def read(finished, path):
    """Return the hash of what the stage that reads a file gets, numbers to the last digit."""
    found = READERS[pattern_of(finished, path)][1](finished, path)
    text = json.dumps(found, default=_plain, sort_keys=True)
    assert " at 0x" not in text, f"{path}: where an object lies says nothing"
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value):
    return value.to_csv() if isinstance(value, pd.DataFrame) else repr(value)


def flip(random, content):
    """Return the bytes with one bit flipped."""
    changed = bytearray(content)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(random, content):
    """Return the bytes cut short, emptied, with a hole of zeros, or with something after them."""
    at = random.randrange(len(content))
    hole = content[:at] + bytes(min(512, len(content) - at)) + content[at + 512 :]
    return random.choice([content[:at], b"", hole, content + b"\n", content + content[at:]])


def edit(random, path, content):
    """Return the bytes after an edit as a person or a program makes one."""
    if path.suffix == ".csv":
        return _edited_table(random, content.decode()).encode()
    if path.suffix == ".parquet":
        return _edited_parquet(random, content)
    return _edited_document(random, content.decode()).encode()


def _edited_table(random, text):
    rows = list(csv.reader(io.StringIO(text, newline="")))
    head, body = rows[0], rows[1:]
    changes = ["saved anew"]
    if body:
        changes += ["cell", "cell", "column", "verdict", "drop", "twice", "order", "cut"]
    change, ends = random.choice(changes), "\n"
    if change == "saved anew":  # as a spreadsheet program does
        ends = "\r\n"
    elif change == "cell":
        row, column = random.choice(body), random.randrange(len(head))
        row[column] = _other(random, row[column])
    elif change == "column":
        column = random.randrange(len(head))
        for row in body:
            row[column] = _halved(row[column])
    elif change == "verdict" and "verdict" in head:
        words = ("reproduced", "not reproduced", "not testable", "direction only", "inside")
        random.choice(body)[head.index("verdict")] = random.choice(words)
    elif change == "drop":
        body.pop(random.randrange(len(body)))
    elif change == "twice":
        body.append(random.choice(body))
    elif change == "order":
        random.shuffle(body)
    elif change == "cut":
        body = body[: len(body) // 2]
    out = io.StringIO()
    csv.writer(out, lineterminator=ends).writerows([head, *body])
    return out.getvalue()


def _other(random, text):
    """Return another value of a cell: a digit more, the half, the opposite, nothing, a word."""
    return random.choice([f"{text}1", _halved(text), f"-{text}", "", "reproduced", "0"])


def _halved(text):
    try:
        return repr(float(text) / 2)
    except ValueError:
        return text[: len(text) // 2]


def _edited_parquet(random, content):
    table = pq.read_table(io.BytesIO(content)).to_pandas()
    numbers = [name for name in table if pd.api.types.is_float_dtype(table[name])]
    change = random.choice(["column", "cell", "drop", "order", "saved anew"])
    if len(table) and change == "column" and numbers:
        name = random.choice(numbers)
        table[name] = table[name] / 2
    elif len(table) and change == "cell" and numbers:
        row = random.randrange(len(table))
        table.loc[row, random.choice(numbers)] = random.random()
    elif change == "drop":
        table = table.iloc[1:]
    elif change == "order":
        table = table.iloc[::-1]
    out = io.BytesIO()
    table.to_parquet(out, index=False)
    return out.getvalue()


def _edited_document(random, text):
    """Return a JSON document with one leaf changed; one that is empty is only laid out anew."""
    document = node = json.loads(text)
    while node:
        key = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
        part = node[key]
        if not isinstance(part, dict | list) or not part:
            is_number = isinstance(part, int | float) and not isinstance(part, bool)
            node[key] = part * 2 + 1 if is_number else f"{part}x"
            break
        node = part
    return json.dumps(document, indent=3)
