"""Builders for tests of sensitivity and forensics: settings, points, judged cells, hypotheses."""

from pathlib import Path

import pandas as pd
from replication.judge.hypothesis import Hypothesis
from replication.sensitivity.design import PointRecord
from replication.sensitivity.design_point import DEFAULT
from replication.study.sensitivity_settings import Sensitivity, load_sensitivity

ROOT = Path(__file__).parents[2]
SETTINGS = load_sensitivity(ROOT)


def settings(**changes):
    return Sensitivity.model_validate({**SETTINGS.model_dump(), **changes})


def hypothesis(**change):
    base = {"id": "h", "study": "synthetic", "tables": ["1"], "title": "t"}
    return Hypothesis.model_validate({**base, "reason": "r", "source": "s", **change})


def record(number, kind, changed="", **values):
    return PointRecord(
        f"{kind}-{number}" if kind != DEFAULT else DEFAULT, kind, changed, values, "", []
    )


def cells_frame(rows):
    columns = ["point", "reading", "row", "value", "inside", "verdict"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(table="1", column="x", engine="ns3", unit="s", published=10.0)
