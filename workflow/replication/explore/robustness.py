"""Robustness: at how many plausible designs a claim holds, and what flips it.

A claim *holds* at a design point where its verdict there is `reproduced`. It holds at a share of
the space-filling points at which it can be tested, given with Wilson's interval as if the points
were a random sample (a Sobol' design covers the space more evenly, so the interval is too wide
rather than too narrow). The words for it are robust, conditional and fragile.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from replication.design.config import load_sensitivity
from replication.design.input_hashes import input_hashes, is_same
from replication.engines.catalogue import chosen_engine
from replication.engines.model import Engine
from replication.engines.ns3 import NS3_VERSION
from replication.explore.design_point import (
    DEFAULT,
    ONE_AT_A_TIME,
    POINT_COLUMNS,
    SEED,
    SPACE_FILLING,
    VERDICTS,
)
from replication.explore.machine import write_json
from replication.metrics.statistic import wilson_interval
from replication.study.files import read_json
from replication.study.table import CLAIM_COLUMNS, read_parquet, read_rows, write_table
from replication.study.verdict import Verdict

#: Tables of a study's folder.
TABLES: dict[str, tuple[str, ...]] = {
    "points": POINT_COLUMNS,
    "claims": (
        *("study", "claim", "engine", "verdict_tier", "verdict_default", "reduced_scale_differs"),
        *("seeds", "seeds_alike", "designs", "holds", "share", "low", "high"),
        *("word", "tested_alone", "flipped_by"),
    ),
    "effects": ("study", "claim", "engine", "parameter", "value", "before", "after"),
}
INPUT_HASHES = "input_hashes.json"
#: A claim is robust at or above the first share of designs, and fragile at or below the second.
#: With fewer than 35 designs Wilson's interval is too wide for either word, even if all agree.
ROBUST_AT_LEAST, FRAGILE_AT_MOST = 0.9, 0.1
ROBUST, CONDITIONAL, FRAGILE, TOO_FEW = "robust", "conditional", "fragile", "too few designs"


def robustness_word(holds: int, designs: int) -> str:
    """Return robust, conditional, fragile, too few designs or not testable."""
    if not designs:
        return Verdict.NOT_TESTABLE
    if wilson_interval(designs, designs)[0] < ROBUST_AT_LEAST:
        return TOO_FEW
    if holds / designs >= ROBUST_AT_LEAST:
        return ROBUST
    return FRAGILE if holds / designs <= FRAGILE_AT_MOST else CONDITIONAL


def measure_study(
    root: Path, name: str, folder: Path, data: Path, ns3_version: str = NS3_VERSION
) -> None:
    """Write the tables of one study (`TABLES`) to `folder`, and the hashes of their inputs.

    `data` holds the verdicts of the tier in the report, if one was run: they are compared with
    those at the reduced scale. `ns3_version` is that of the runs.
    """
    points = pd.DataFrame(read_rows(folder / "points.csv", POINT_COLUMNS))
    points["values"] = points["values"].map(json.loads)
    engine = str(points["engine"].iloc[0])
    verdicts = verdicts_by_claim(points, read_parquet(folder / VERDICTS).to_pandas())
    path = data / "claims.csv"
    judged = read_rows(path, CLAIM_COLUMNS) if path.is_file() else []
    own = [row for row in judged if (row["study"], row["engine"]) == (name, engine)]
    in_tier = {row["claim"]: row["verdict"] for row in own}
    rows = {"claims": claim_rows(verdicts, in_tier), "effects": effect_rows(verdicts)}
    for part, table in rows.items():
        rows_with_study = ({"study": name, "engine": engine} | row for row in table)
        write_table(folder / f"{part}.csv", rows_with_study, TABLES[part])
    write_json(folder / INPUT_HASHES, sources(root, name, chosen_engine(engine, ns3_version)))


def verdicts_by_claim(points: pd.DataFrame, claims: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the verdicts on each claim, a row a design point; empty where it was not run."""
    return {
        str(claim): points.merge(verdicts[["point", "verdict"]], how="left").fillna({"verdict": ""})
        for claim, verdicts in claims.groupby("claim", sort=False)
    }


def claim_rows(
    verdicts: Mapping[str, pd.DataFrame], in_tier: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    """Yield a row for each claim, with its verdict in the report's tier."""
    for claim, table in verdicts.items():
        default, tier = _default(table) or str(Verdict.NOT_TESTABLE), in_tier.get(claim, "")
        seeds = table.loc[table["kind"].isin([DEFAULT, SEED]) & (table["verdict"] != ""), "verdict"]
        decided = table[~table["verdict"].isin(["", Verdict.NOT_TESTABLE])]
        filled = decided.loc[decided["kind"] == SPACE_FILLING, "verdict"]
        holds, designs = int((filled == Verdict.REPRODUCED).sum()), len(filled)
        low, high = wilson_interval(holds, designs) if designs else (math.nan, math.nan)
        alone = decided[decided["kind"] == ONE_AT_A_TIME]
        flips = (alone["verdict"] == Verdict.REPRODUCED) != (default == Verdict.REPRODUCED)
        flipped = alone[flips & (default != Verdict.NOT_TESTABLE)]
        yield {
            "claim": claim,
            "verdict_tier": tier,
            "verdict_default": default,
            "reduced_scale_differs": bool(tier) and tier != default,
            "seeds": len(seeds),
            "seeds_alike": int((seeds == default).sum()),
            "designs": designs,
            "holds": holds,
            "share": holds / designs if designs else math.nan,
            "low": low,
            "high": high,
            "word": robustness_word(holds, designs),
            "tested_alone": len(alone),
            "flipped_by": "; ".join(
                f"{key} = {value if isinstance(value := values[key], str) else json.dumps(value)}"
                for key, values in zip(flipped["changed"], flipped["values"], strict=True)
            ),
        }


def _default(table: pd.DataFrame) -> str:
    return str(table.loc[table["kind"] == DEFAULT, "verdict"].iloc[0])


def effect_rows(verdicts: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, object]]:
    """Yield the verdict on each claim before and after each change of one assumption."""
    for claim, table in verdicts.items():
        for one in table[table["kind"] == ONE_AT_A_TIME].to_dict("records"):
            yield {
                "claim": claim,
                "parameter": one["changed"],
                "value": json.dumps(one["values"][one["changed"]]),
                "before": _default(table),
                "after": one["verdict"],
            }


def sources(root: Path, name: str, engine: Engine) -> dict[str, str]:
    """Return the current hashes of all that decides a study's robustness."""
    settings = load_sensitivity(root)
    common = settings.decisive(exclude={"explanation", "studies", "other_studies"})
    study_settings = settings.of(name).decisive()
    return input_hashes(root, name, engine, settings=[common, study_settings])


def is_current(root: Path, data: Path, name: str) -> bool:
    """Return whether no input of a study's tables in the folder of results has changed."""
    path = data / "sensitivity" / name / INPUT_HASHES
    then = read_json(path) if path.is_file() else {}
    return is_same(data, then, lambda engine: sources(root, name, engine))
