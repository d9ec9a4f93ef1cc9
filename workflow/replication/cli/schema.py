"""JSON schemas of the documents that users write, from their models."""

import json
from typing import Any

from pydantic import BaseModel

from replication.compare.agreement import EngineDifferences
from replication.design.config import Config, Sensitivity, Tier
from replication.explore.modern_kernel import ModernKernel
from replication.explore.regions.region_model import Region, RegionSettings
from replication.study.claim_model import Findings
from replication.study.scenario import Scenario
from replication.study.study import Study
from replication.verdicts.cause import Explanations

MODELS: dict[str, type[BaseModel]] = {
    "config": Config,
    "engine_differences": EngineDifferences,
    "explanations": Explanations,
    "findings": Findings,
    "region": Region,
    "regions": RegionSettings,
    "scenario": Scenario,
    "sensitivity": Sensitivity,
    "modern_kernel": ModernKernel,
    "study": Study,
    "tier": Tier,
}


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of `model`, with the meaning of each key."""
    schema = model.model_json_schema()
    if model is Study:
        # Each of a study's files has some of the keys; `replicate validate` requires all.
        del schema["required"]
        _explain_templates(schema["$defs"])
    return schema


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
        template["properties"] = {
            key: {"description": entry.get("description", "")}
            for name in names
            for key, entry in known[name]["properties"].items()
        }


def schema_text(model: type[BaseModel]) -> str:
    """Return the schema of `model` as text, one definition per line."""
    schema = schema_of(model)
    definitions = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(one, sort_keys=True)}"
        for name, one in sorted(schema.pop("$defs", {}).items())
    )
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(schema.items())]
    return "{\n" + ",\n".join([*lines, f'"$defs": {{\n{definitions}\n}}']) + "\n}\n"
