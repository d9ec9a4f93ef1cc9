"""One reader of ours under atheris: `python fuzz_reader.py KIND COUNTS [OPTIONS] [CORPUS]`.

Bytes go to the reader as a file; InputError is the only error that it may raise. How many it got,
took and refused is in the file COUNTS at any time: libFuzzer ends the process without a word to it.
"""

import mmap
import sys
import tempfile
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parents[2] / "workflow"), str(Path(__file__).parents[2])]

with atheris.instrument_imports(include=["replication", "yaml"]):
    from replication.plan.config import Config
    from replication.plan.study_check import check_study
    from replication.study.errors import InputError
    from replication.study.files import read_model
    from replication.study.scenario import Scenario
    from replication.study.study import Study


def main():
    from tests.faults.hostile import COUNTS
    from tests.unit.conftest import CLAIM, study_document

    kind, counts = sys.argv.pop(1), Path(sys.argv.pop(1))
    counts.write_bytes(bytes(COUNTS.size))
    models = {"study": Study, "scenario": Scenario, "config": Config}
    study = Study.model_validate(study_document() | {"claims": [CLAIM]})
    with (
        tempfile.TemporaryDirectory() as folder,
        counts.open("r+b") as file,
        mmap.mmap(file.fileno(), COUNTS.size) as memory,
    ):
        path = Path(folder) / "file"
        tried = right = refused = 0

        def one(data):
            nonlocal tried, right, refused
            path.write_bytes(data)
            tried += 1
            COUNTS.pack_into(memory, 0, tried, right, refused)
            try:
                check_study(study, path) if kind == "published" else read_model(path, models[kind])
                right += 1
            except InputError as error:
                assert str(path) in str(error)
                refused += 1
            COUNTS.pack_into(memory, 0, tried, right, refused)

        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
