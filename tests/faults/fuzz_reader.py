"""One reader of ours under atheris: `python fuzz_reader.py KIND [libFuzzer's options] [corpus]`.

Bytes go to the reader as a file; InputError is the only error that it may raise.
"""

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
    from tests.unit.conftest import CLAIM, study_document

    kind = sys.argv.pop(1)
    models = {"study": Study, "scenario": Scenario, "config": Config}
    study = Study.model_validate(study_document() | {"claims": [CLAIM]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"

        def one(data):
            path.write_bytes(data)
            try:
                check_study(study, path) if kind == "published" else read_model(path, models[kind])
            except InputError as error:
                assert str(path) in str(error)

        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
