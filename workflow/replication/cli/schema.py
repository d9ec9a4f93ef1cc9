"""JSON schemas of the documents that users write, from their models."""

import ast
import functools
import inspect
import itertools
import json
import textwrap
from collections import ChainMap
from typing import Any

from pydantic import BaseModel

from replication.base.model import Document
from replication.compare.agreement import EngineDifferences
from replication.design.config import Config, Sensitivity, Tier
from replication.explore.cause import Explanations
from replication.explore.regions.region_model import Region, RegionSettings
from replication.explore.variation_model import MODERN_KERNEL, NamedVariation
from replication.study.finding_model import Findings
from replication.study.intervention import Interventions
from replication.study.scenario import Scenario
from replication.study.study import Study
from replication.study.verdict import SettingsChanges

MODELS: dict[str, type[BaseModel]] = {
    "changes": SettingsChanges,
    "config": Config,
    "engine_differences": EngineDifferences,
    "explanations": Explanations,
    "findings": Findings,
    "interventions": Interventions,
    "region": Region,
    "regions": RegionSettings,
    "scenario": Scenario,
    "sensitivity": Sensitivity,
    MODERN_KERNEL: NamedVariation,
    "study": Study,
    "tier": Tier,
}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of `model`, with the meaning of each key."""
    schema = model.model_json_schema()
    _describe(model.__name__, schema)
    for name, definition in schema.get("$defs", {}).items():
        _describe(name, definition)
    if model is Study:
        # Each of a study's files has some of the keys; `replicate validate` requires all.
        del schema["required"]
        _explain_templates(schema["$defs"])
    return schema


def _describe(name: str, definition: dict[str, Any]) -> None:
    """Add to a model's schema the meaning of each key: the text below the field."""
    meanings = _meanings().get(name, {})
    properties = definition.get("properties", {})
    for key in meanings.keys() & properties.keys():
        properties[key] = dict(sorted(({"description": meanings[key]} | properties[key]).items()))


@functools.cache
def _meanings() -> dict[str, dict[str, str]]:
    """Return the texts below the fields of each model, by the model's name."""
    meanings: dict[str, dict[str, str]] = {}
    models = [Document]
    for model in models:
        models += model.__subclasses__()
        inherited = [meanings.get(base.__name__, {}) for base in model.__bases__]
        meanings[model.__name__] = dict(ChainMap(_texts(model), *inherited))
    return meanings


def _texts(model: type[BaseModel]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, text in itertools.pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(str(value))):
                texts[name] = inspect.cleandoc(value)
    return texts


def _explain_templates(definitions: dict[str, Any]) -> None:
    """Add the meanings of a scenario's keys to the templates of links, flows and hosts."""
    known = schema_of(Scenario)["$defs"]
    experiment = definitions["Experiment"]["properties"]
    links = definitions["Topology"]["properties"]["links"]
    for template, names in (
        (links["items"], ("Link",)),
        (experiment["flows"]["items"], ("CbrFlow", "TcpFlow")),
        (experiment["host"]["anyOf"][0], ("Host",)),
    ):
        properties: dict[str, Any] = {}
        for name in names:
            for key, entry in known[name]["properties"].items():
                properties[key] = {"description": entry.get("description", "")}
        template["properties"] = properties


def schema_text(model: type[BaseModel]) -> str:
    """Return the schema of `model` as text, one definition per line."""
    schema = schema_of(model)
    definitions = []
    for name, definition in sorted(schema.pop("$defs", {}).items()):
        definitions.append(f"  {json.dumps(name)}: {json.dumps(definition, sort_keys=True)}")
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(schema.items())]
    lines.append('"$defs": {\n' + ",\n".join(definitions) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
