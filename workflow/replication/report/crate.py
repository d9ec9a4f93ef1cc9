"""The release as an RO-Crate: what ran, with which software, on which inputs, and its results.

It follows the profile "Workflow Run Crate" (https://w3id.org/ro/wfrun). All it says comes from
released files, so the same release gives the same bytes.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from rocrate.model import ComputationalWorkflow, ContextEntity
from rocrate.rocrate import ROCrate

from replication.base.files import read_json, write_text
from replication.report.manifest import CRATE, MANIFEST, PAGES, PROVENANCE, WORKFLOW

_PROFILES = {
    "Process Run Crate": "https://w3id.org/ro/wfrun/process/0.6",
    "Workflow Run Crate": "https://w3id.org/ro/wfrun/workflow/0.6",
}
_FORMATS = {".csv": "text/csv", ".json": "application/json", ".yaml": "application/yaml"}
_FORMATS |= {".parquet": "application/vnd.apache.parquet"}


def write_crate(root: Path, released: Path) -> None:
    """Copy the workflow into the folder of a release, and describe all its files there."""
    shutil.copyfile(root / WORKFLOW, released / WORKFLOW)
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    provenance = read_json(released / PROVENANCE)
    tier, written = provenance["tier"]["id"], provenance["written"]
    crate = ROCrate()
    authors = []
    for number, author in enumerate(citation["authors"], start=1):
        authors.append(_add(crate, f"#author-{number}", "Organization", **author))
    license_ = {"@id": f"https://spdx.org/licenses/{citation['license']}"}
    workflow = _add_workflow(crate, provenance)
    workflow["license"] = license_
    parts = _add_files(crate, released)
    inputs = [parts[name] for name in parts if name.startswith("configs/")]
    run = _add(crate, "#run", "CreateAction", name=f"make report TIER={tier}", endTime=written)
    run["instrument"], run["agent"] = workflow, authors
    run["object"] = [*inputs, _add(crate, "#tier", "PropertyValue", name="tier", value=tier)]
    run["result"] = [entity for entity in parts.values() if entity not in inputs]
    parts[PROVENANCE]["about"] = run
    described = crate.root_dataset
    for name, address in _PROFILES.items():
        version = address.rpartition("/")[2]
        profile = _add(crate, address, "CreativeWork", name=name, version=version)
        described.append_to("conformsTo", profile)
    described["name"], described["author"] = citation["title"], authors
    described["description"] = f"Results of tier {tier}, without series; pages are in {PAGES}"
    described["datePublished"], described["license"] = written, license_
    described["mentions"] = [run]
    text = json.dumps(crate.metadata.generate(), ensure_ascii=False, indent=1, sort_keys=True)
    write_text(released / CRATE, text + "\n")


def _add(crate: ROCrate, identifier: str, kind: str, **properties: Any) -> ContextEntity:
    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


def _add_workflow(crate: ROCrate, provenance: Mapping[str, Any]) -> ComputationalWorkflow:
    """Add the workflow and the programs that it needs."""
    versions = dict(provenance.get("packages", {}))
    workflow = crate.add_workflow(
        dest_path=WORKFLOW, main=True, lang="snakemake", lang_version=versions.get("snakemake")
    )
    workflow["name"] = "From studies to a report"
    if commit := provenance.get("commit"):
        workflow["version"] = commit
    versions |= {name: engine["version"] for name, engine in provenance["engines"].items()}
    programs = []
    for name, version in sorted(versions.items()):
        kind = "SoftwareApplication"
        programs.append(_add(crate, f"#{name}", kind, name=name, softwareVersion=version))
    workflow["softwareRequirements"] = programs
    return workflow


def _add_files(crate: ROCrate, released: Path) -> dict[str, Any]:
    """Add each file but the workflow; return the entities by name."""
    paths = [path for path in released.rglob("*") if path.is_file()]
    names = {path.relative_to(released).as_posix() for path in paths}
    # The manifest is written last, since it has the crate's checksum.
    names = (names - {CRATE, WORKFLOW}) | {MANIFEST.name}
    parts = {}
    for name in sorted(names):
        encoding = _FORMATS.get(Path(name).suffix, "text/plain")
        properties = {"name": name, "encodingFormat": encoding}
        parts[name] = crate.add_file(dest_path=name, properties=properties)
    return parts
