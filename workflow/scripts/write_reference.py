"""Write configs/reference.md: every key of every file, and what each engine supports.

    python workflow/scripts/write_reference.py

Keys come from the models, and support from `Engine.refusal` of many small scenarios.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from replication.base.files import parse_yaml, write_text
from replication.base.model import REFERENCE
from replication.cli.schema import MODELS, schema_of
from replication.design.config import Replicates, Tier, load_sensitivity, load_tier, study_ids
from replication.engines.catalogue import ENGINES
from replication.engines.model import Engine
from replication.explore.cause import load_explanations
from replication.explore.regions.region_model import load_region, region_names
from replication.study.scenario import CONGESTION_CONTROLS, Scenario
from replication.verdicts.metric_range import BOUNDED, UNBOUNDED

_HEAD = """\
# What can and cannot be expressed

`workflow/scripts/write_reference.py` writes this page from the models and the engines' refusals.
[What the engines take](#what-the-engines-take) compares the engines; [bounds](#bounds-of-metrics)
lists the metrics that a scenario bounds; [sizes](#sizes) are those of tiers and budgets;
[keys](#keys) lists each key of each file with its form, default and meaning (* required).

## What the engines take

`yes`, or the engine's refusal. All engines support what has no row.
"""
_ROOT = Path(__file__).parents[2]
Keys = Mapping[str, Any]
#: A link, a flow and hosts that all engines support; lists of a link; and required keys of queues,
#: losses and shapers.
_BASE = parse_yaml("""
link: {id: l, a: a, b: b, rate_bps: 1e7, delay_s: 0.01, jitter_s: 0, frame_bytes: 0,
  queue_ab: {kind: droptail, limit_packets: 100}, queue_ba: {kind: droptail, limit_packets: 100}}
flow: {id: f, kind: tcp, source: a, destination: b, start_s: 1.0, stop_s: 9.0, segment_bytes: 1448,
  initial_window_segments: 10, initial_rto_s: 1.0, delayed_ack_segments: 2,
  delayed_ack_timeout_s: 0.04, minimum_rto_s: 0.2, clock_granularity_s: 0.004}
lists: {changes: [{at_s: 5.0, rate_bps: 2e7}], opportunities_ab: [1]}
host: {segmentation_offload: false, timer_hz: 250, loss_probe_floor: 2 ms, device_queue: false,
  segment_memory_bytes: null}
given: {limit_packets: 100, target_s: 0.005, interval_s: 0.1, update_interval_s: 0.015,
  minimum_threshold_packets: 5, maximum_threshold_packets: 50, queue_weight: 0.001953125,
  maximum_probability: 0.1, mean_packet_bytes: 1500, probability: 0.01, flow: f, data_packets: [3],
  burst_bytes: 3000, line_rate_bps: 1e8}
""")
_LINK, _FLOW, _HOST = _BASE["link"], _BASE["flow"], _BASE["host"]
#: Options that a congestion control may require; it is supported if any combination is.
_OPTIONS: Mapping[str, Sequence[Any]] = {
    **dict.fromkeys(("sack", "limited_transmit", "timestamps"), (True, False)),
    "recovery": ("classic", "prr"),
}


def reference() -> str:
    """Return the reference as Markdown."""
    return "\n".join([_HEAD, *_engines(), *_bounds(), *_sizes(), "## Keys\n", *_keys()])


def _sizes() -> Iterator[str]:
    """Yield what each tier runs, the smallest first, and what the searches may spend."""
    tiers = [load_tier(_ROOT, path.stem) for path in (_ROOT / "configs/tiers").glob("*.yaml")]
    yield "## Sizes\n"
    yield "| tier | runs of a point | levels | longest run | textbook set-up on |"
    yield "|---|---|---|---|---|"
    for tier in sorted(tiers, key=_smallest_first):
        runs = ", else ".join(_step(step) for step in tier.replicates)
        longest = f"{tier.cost_limit_s:g} s of CPU" if tier.cost_limit_s else "as published"
        textbook = tier.textbook if isinstance(tier.textbook, str) else ", ".join(tier.textbook)
        yield f"| `{tier.id}` | {runs} | {tier.levels} | {longest} | {textbook} |"
    studies = study_ids(_ROOT)
    sensitivity = load_sensitivity(_ROOT)
    explored_s = sum(sensitivity.of(name).exploration.cpu_budget_s for name in studies)
    searches = [load_explanations(_ROOT, name) for name in studies]
    explained_s = sum(search.cpu_budget_s for search in searches if search)
    mapped_s = sum(load_region(_ROOT, name).cpu_budget_s for name in region_names(_ROOT))
    yield (
        f"\nBudgets in CPU minutes: `make explain` {(explored_s + explained_s) / 60:.0f}, "
        f"`make regions` {mapped_s / 60:.0f} (tier paper).\n"
    )


def _step(step: Replicates) -> str:
    """Return how many runs a point has, and up to which cost."""
    limit = f" below {step.cost_below_s:g} s of CPU" if step.cost_below_s else ""
    return f"{step.count}{limit}"


def _smallest_first(tier: Tier) -> tuple[int, int]:
    """Sort tiers by the runs of a costly point, then of a cheap one."""
    return tier.replicates[-1].count, tier.replicates[0].count


def _bounds() -> Iterator[str]:
    bounded, others = (", ".join(f"`{metric}`" for metric in of) for of in (BOUNDED, UNBOUNDED))
    yield f"""\
## Bounds of metrics

The bounds check ([how a verdict is reached](README.md#how-a-verdict-is-reached)) knows what a
scenario allows of {bounded}.

Nothing follows from a scenario for {others}: claims about them are not checked.
"""


# -- what the engines take ------------------------------------------------------------------------


def _engines() -> Iterator[str]:
    known = schema_of(Scenario)["$defs"]
    flow, link, host = known["TcpFlow"], known["Link"], known["Host"]
    rows = [(f"`{c}`", [{"flow": {"congestion_control": c}}]) for c in CONGESTION_CONTROLS]
    yield from _table("Congestion control", rows)
    yield from _table("Queues", _queues(known))
    rows = []
    for key in ("loss", "shaper"):
        for kind, model in _kinds(link["properties"][f"{key}_ab"]):
            part = _minimal(known[model], kind)
            rows.append((f"`{key}: {kind}`", [{"link": {f"{key}_ab": part}}]))
    rows += [(_key_value(k, v), [{"link": {k: v}}]) for k, v in _probes(link, _LINK) if k in _LINK]
    rows += [(f"link: `{key}`", [{"link": {key: value}}]) for key, value in _BASE["lists"].items()]
    for key, value in _probes(host, _HOST):
        clock = {"clock_granularity_s": 1 / value} if key == "timer_hz" else {}
        rows.append((f"host: {_key_value(key, value)}", [{"host": {key: value}, "flow": clock}]))
    yield from _table("Links and hosts", rows)
    rows = []
    for key, value in _probes(flow, _FLOW):
        having = [c for c in CONGESTION_CONTROLS if key.startswith(f"{c}_")]
        controls = having or CONGESTION_CONTROLS
        tried = [{"flow": {"congestion_control": control, key: value}} for control in controls]
        rows.append((_key_value(key, value), tried))
    yield from _table("TCP flows", rows)


def _queues(known: Keys) -> Iterator[tuple[str, list[Keys]]]:
    for kind, name in _kinds(known["Link"]["properties"]["queue_ab"]):
        queue = _minimal(known[name], kind)
        options = {k: (False, True) for k, v in known[name]["properties"].items() if _is_truth(v)}
        rows = [(f"`{kind}`", {})]
        rows += [(f"`{kind}`: {_key_value(k, v)}", {k: v}) for k, v in _probes(known[name], queue)]
        for label, keys in rows:
            queues = [queue | truths | keys for truths in _each(options)]
            yield label, [{"link": {"queue_ab": tried}} for tried in queues]


def _each(options: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*options.values()):
        yield dict(zip(options, values, strict=True))


def _table(title: str, rows: Iterable[tuple[str, list[Keys]]]) -> Iterator[str]:
    """Yield a table: a row for each kind, and for each key with a different answer."""
    yield f"### {title}\n\n|  | {' | '.join(ENGINES)} |\n|---|{'---|' * len(ENGINES)}"
    known = ["yes"] * len(ENGINES)
    for label, tried in rows:
        answers = [_answer(engine, tried) for engine in ENGINES.values()]
        is_kind = ":" not in label
        if is_kind or answers != known:
            yield f"| {label} | {' | '.join(answers)} |"
        known = answers if is_kind else known
    yield ""


def _answer(engine: Engine, tried: Sequence[Keys]) -> str:
    """Return `yes`, or the engine's refusals, without congestion controls that it never has."""
    supported, refused = set(), dict[str, str]()
    for keys in tried:
        control = keys.get("flow", {}).get("congestion_control", "cubic")
        options = _accepted(engine, control) or [{}] * (len(tried) == 1)
        reasons = [_refusal(engine, control, keys, with_) for with_ in options]
        if not all(reasons):
            supported.add(control)
        elif reasons:
            refused.setdefault(control, reasons[0].removeprefix(f"{engine.name} has no "))
    alike: dict[str, list[str]] = {}
    for control in sorted(refused.keys() - supported):
        alike.setdefault(refused[control].removeprefix(f"{control} with"), []).append(control)
    refusals = []
    for words, controls in alike.items():
        names = "TCP" if not supported and len(refused) > 1 else ", ".join(controls)
        refusals.append(f"no {names} with{words}" if words[0] in " o" else f"no {words}")
    return "; ".join(refusals) or "yes"


@functools.cache
def _accepted(engine: Engine, control: str) -> list[dict[str, Any]]:
    """Return the options with which an engine supports a congestion control."""
    return [options for options in _each(_OPTIONS) if not _refusal(engine, control, {}, options)]


def _refusal(engine: Engine, control: str, keys: Keys, options: Keys) -> str:
    # DCTCP needs marks.
    chosen = {"congestion_control": control, "ecn": control == "dctcp"}
    document = {
        "duration_s": 10.0,
        "sampling_interval_s": 1.0,
        "seed": 1,
        "nodes": ["a", "b"],
        "links": [_LINK | keys.get("link", {})],
        "flows": [_FLOW | chosen | options | keys.get("flow", {})],
        "host": _HOST | keys.get("host", {}),
    }
    return engine.refusal(Scenario.model_validate(document))


def _minimal(model: Keys, kind: str) -> dict[str, Any]:
    """Return a queue, loss or shaper with only its required keys."""
    keys = [key for key in model.get("required", []) if key != "kind"]
    if kind == "droptail":
        keys.append("limit_packets")
    return {"kind": kind, **{key: _BASE["given"][key] for key in keys}}


def _kinds(form: Keys) -> Iterator[tuple[str, str]]:
    """Yield kind and model of each document that a key may have."""
    for option in form.get("anyOf", [form]):
        for kind, place in option.get("discriminator", {}).get("mapping", {}).items():
            yield kind, place.rpartition("/")[2]


def _probes(model: Keys, base: Keys) -> Iterator[tuple[str, Any]]:
    """Yield keys with their possible values, or with a number that differs from the base's."""
    for key, form in model["properties"].items():
        if key in ("kind", "congestion_control", "limit_bytes"):
            continue
        form = next((f for f in form.get("anyOf", []) if f.get("type") != "null"), form) | form
        default = base.get(key, form.get("default"))
        if "enum" in form:
            yield from ((key, value) for value in form["enum"])
        elif _is_truth(form):
            yield from ((key, value) for value in (True, False))
        elif form.get("type") == "integer":
            yield key, 3 * default if default else min(20000, form.get("maximum", 20000) // 16)
        elif form.get("type") == "number":
            yield key, 3 * default if default else 0.5 * form.get("exclusiveMaximum", 0.002)


def _is_truth(form: Keys) -> bool:
    return form.get("type") == "boolean" or any(map(_is_truth, form.get("anyOf", [])))


def _key_value(key: str, value: Any) -> str:
    words = f"{value:g}" if isinstance(value, float) else str(value)
    return f"`{key}: {words.lower()}`"


# -- keys -----------------------------------------------------------------------------------------


def _keys() -> Iterator[str]:
    """Yield a section for each file, with a table of keys for each document."""
    written: set[str] = set()
    for file, model in {"study": MODELS["study"], **MODELS}.items():
        schema = schema_of(model)
        known = schema.get("$defs", {})
        yield f"### File: {file}\n"
        for name, document in {model.__name__: schema, **known}.items():
            if name in written or "properties" not in document:
                continue
            written.add(name)
            yield f"#### {name}\n\n| key | form | meaning |\n|---|---|---|"
            for key, form in document["properties"].items():
                star = " *" if key in document.get("required", []) else ""
                default = form.get("default")
                default_text = (
                    "" if default in (None, [], {}) else f"; else `{json.dumps(default)}`"
                )
                meaning = " ".join(form.get("description", "").split()).replace("|", "\\|")
                meaning = meaning.replace("](#", "](README.md#")
                yield f"| `{key}`{star} | {_form(form, known)}{default_text} | {meaning} |"
            yield ""


def _form(form: Keys, known: Keys) -> str:
    """Return the type of a key for readers; `known` are the documents of its file."""
    for key in ("anyOf", "oneOf"):
        if key in form:
            return " or ".join(dict.fromkeys(_form(option, known) for option in form[key]))
    if "$ref" in form:
        name = form["$ref"].rpartition("/")[2]
        is_document = "properties" in known.get(name, {})
        return f"[{name}](#{name.lower()})" if is_document else _form(known.get(name, {}), known)
    if "enum" in form or "const" in form:
        return ", ".join(f"`{value}`" for value in form.get("enum", [form.get("const")]))
    kind = form.get("type")
    if kind == "array" and "items" in form:
        return f"list of {_form(form['items'], known)}"
    if kind == "object" and isinstance(form.get("additionalProperties"), dict):
        return f"map to {_form(form['additionalProperties'], known)}"
    limits = [f"{sign} {form[key]:g}" for key, sign in _LIMITS.items() if key in form]
    return " ".join([_TYPES.get(str(kind), "any value"), ", ".join(limits)]).strip()


_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_TYPES = {"integer": "whole number", "string": "text", "boolean": "true or false", "array": "list"}
_TYPES |= {"number": "number", "object": "map", "null": "null"}


if __name__ == "__main__":
    write_text(Path(REFERENCE), reference())
