"""Builders for tests of sensitivity: settings, points, causes."""

from replication.explore.design_point import DEFAULT, DesignPoint
from replication.study.sensitivity_settings import Sensitivity, load_sensitivity

from tests.unit.conftest import ROOT

SETTINGS = load_sensitivity(ROOT)


def settings(**changes):
    return Sensitivity.model_validate({**SETTINGS.model_dump(), **changes})


def cause(**change):
    return {"id": "a", "title": "t", "reason": "r", "source": "s", **change}


def record(number, kind, changed="", **values):
    return DesignPoint(f"{kind}-{number}" if kind != DEFAULT else DEFAULT, kind, changed, values)
