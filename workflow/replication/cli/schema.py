"""JSON schemas of the documents people write, from the typed models."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from replication.cli.key_table import with_tables
from replication.compare.conformance_model import Conformance
from replication.compare.engine_difference import EngineDifferences
from replication.judge.cause import Explanations
from replication.plan.config import Config, Tier
from replication.sensitivity.maps.map_model import Map, MapSettings
from replication.sensitivity.modern_kernel import Today
from replication.study.files import write_text
from replication.study.scenario import Scenario
from replication.study.sensitivity_settings import Sensitivity
from replication.study.study import Study

MODELS: dict[str, type[BaseModel]] = {
    "config": Config,
    "engine_differences": EngineDifferences,
    "conformance": Conformance,
    "explanations": Explanations,
    "map": Map,
    "mapping": MapSettings,
    "scenario": Scenario,
    "sensitivity": Sensitivity,
    "today": Today,
    "study": Study,
    "tier": Tier,
}


def schema_text(model: type[BaseModel]) -> str:
    """Return the schema of `model` as the file holds it."""
    return json.dumps(model.model_json_schema(), indent=2, sort_keys=True) + "\n"


def write_schemas(configs: Path) -> list[Path]:
    """Write every schema, and the tables of keys in the guide, into `configs`; return the paths."""
    guide, folder = configs / "README.md", configs / "schemas"
    write_text(guide, with_tables(guide.read_text(encoding="utf-8")))
    paths = [guide]
    for name, model in MODELS.items():
        path = folder / f"{name}.schema.json"
        write_text(path, schema_text(model))
        paths.append(path)
    return paths
