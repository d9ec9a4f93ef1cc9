"""Which replicates are the same run: what TCP does in them, sample by sample.

Replicates of a point are compared up to the earliest end of any of them, since a drawn end changes
what equal runs send. Round trips are not compared, since a drawn delay shifts them whatever TCP
does. Each flow's samples become one number, a digest, when results are collected. Runs have it
where numbers of one published run are judged (`verdicts.published_run`).
"""

from collections.abc import Iterator

import pandas as pd

from replication.metrics.metric import chosen_flows, flow_subjects
from replication.metrics.results import Results, Window
from replication.metrics.sampled import RUN, SERIES_DIGEST


def compared_windows(results: Results, runs: pd.DataFrame) -> Iterator[tuple[Window, pd.DataFrame]]:
    """Yield the window up to the earliest end of a point's replicates, and the runs that have it.

    `runs` are rows of `Results.runs`, with all replicates of their points.
    """
    supported = runs[runs["supported"]]
    ends = supported["scenario"].map(lambda name: float(results.scenarios[name]["duration_s"]))
    earliest = ends.groupby([supported["engine"], supported["point"]]).transform("min")
    for end, alike in supported.groupby(earliest):
        yield (0.0, float(str(end))), alike


def digest_subjects(results: Results, runs: pd.DataFrame) -> pd.DataFrame:
    """Return scenario, engine and subject of the TCP flows of these runs."""
    return flow_subjects(chosen_flows(results, runs, "tcp"))


def run_digests(results: Results, runs: pd.DataFrame) -> pd.DataFrame:
    """Return replicate, point, subject and digest of each TCP flow, sorted by the first three."""
    parts = [pd.DataFrame(columns=["replicate", "point", "subject", "digest"])]
    for window, alike in compared_windows(results, runs):
        digests = results.values(SERIES_DIGEST, window, digest_subjects(results, alike))
        joined = alike[["replicate", "point", *RUN]].merge(digests, on=RUN)
        parts.append(joined.rename(columns={"value": "digest"}).drop(columns=RUN))
    keys = ["replicate", "point", "subject"]
    return pd.concat(parts[1:] or parts).sort_values(keys, ignore_index=True)
