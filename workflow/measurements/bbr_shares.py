"""Measure BBR's share against a loss-based flow, and write data/bbr_shares.csv beside Ware's law.

`make measurements` makes the runs of 400 s on Linux that the table lacks, one for each buffer and
rival (5 CPU minutes). The law's authors ran 400 s; shares of earlier ends are of the same run.
"""

import argparse
import itertools
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from replication.base.table import (
    BBR_SHARE_COLUMNS,
    BBR_SHARES,
    Row,
    grouped,
    read_rows,
    write_table,
)
from replication.engines.path import TcpPath, bbr_share
from replication.study.scenario import Scenario

from measurements.bench import ROOT, Bench, Result, mean, program
from measurements.difference_conditions import SEGMENT, bdp_packets, flow_of
from measurements.differences import generation
from measurements.scenarios import Part, droptail, single_link

ENGINE = "linux"
RATE_BPS, RTT_S = 10e6, 0.04
BUFFERS_BDP = (2, 4, 8, 16, 32, 64)
RIVALS = ("linuxreno",)
#: Ends of the measured parts of a run; the law's authors ran 400 s, and regions run 60 s.
UNTIL_S = (60, 160, 400)
#: The receive window limits neither flow: it is ten times the deepest queue.
WINDOW_BYTES = 10 * 64 * bdp_packets(RATE_BPS, RTT_S) * SEGMENT


def scenario(buffer_bdp: int, rival: str, duration_s: float = UNTIL_S[-1]) -> Part:
    """Return one BBR flow and one rival that start together at one bottleneck."""
    window = {"maximum_window_bytes": WINDOW_BYTES}
    flows = [
        flow_of("bbr", ENGINE, True, "bbr", **window),
        flow_of(rival, ENGINE, True, "rival", **window),
    ]
    queue = droptail(buffer_bdp * bdp_packets(RATE_BPS, RTT_S))
    return single_link(
        flows, rate_bps=RATE_BPS, delay_s=RTT_S / 2, queue=queue, duration_s=duration_s
    )


def rows_of(
    buffer_bdp: int, rival: str, document: Part, result: Result, engine_generation: str
) -> list[Row]:
    """Return a row of the table for each end."""
    scenario = Scenario.model_validate(document)
    path = TcpPath.of(scenario)
    queued = [float(row["time_s"]) for row in result.series if row["link"]]
    packets = result.queue()
    rows = []
    for until_s in UNTIL_S:
        sums = dict.fromkeys(("bbr", "rival"), 0.0)
        for row in result.series:
            if row["flow"] and float(row["time_s"]) <= until_s:
                sums[row["flow"]] += float(row["throughput_bps"])
        queue = mean([n for n, at in zip(packets, queued, strict=True) if at <= until_s])
        rows.append(
            {
                "rival": rival,
                "buffer_bdp": str(buffer_bdp),
                "until_s": str(until_s),
                "bbr_share": f"{sums['bbr'] / sum(sums.values()):.3f}",
                "law": f"{float(bbr_share(path)):.3f}",
                "queue_share": f"{queue / path.queue_packets:.3f}",
                "generation": engine_generation,
                "scenario": scenario.id,
            }
        )
    return rows


def kept(path: Path, now: str) -> dict[tuple[int, str], list[Row]]:
    """Return the rows of the table that are of the present scenarios and engine, by case."""
    rows = read_rows(path, BBR_SHARE_COLUMNS) if path.is_file() else []
    current = {}
    for (rival, buffer), same in grouped(rows, "rival", "buffer_bdp").items():
        document = Scenario.model_validate(scenario(int(buffer), rival))
        if {(row["generation"], row["scenario"]) for row in same} == {(now, document.id)}:
            current[int(buffer), rival] = same
    return current


def main() -> None:
    """Run every buffer and rival that the table lacks, and write the table after each."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="runs at a time")
    words = parser.parse_args()
    table = ROOT / BBR_SHARES
    now = generation(ENGINE)
    lock = threading.Lock()
    cases = [(buffer, rival) for rival, buffer in itertools.product(RIVALS, BUFFERS_BDP)]
    rows = kept(table, now)
    with (
        tempfile.TemporaryDirectory(prefix="bbr-shares-") as folder,
        ThreadPoolExecutor(words.cores) as pool,
    ):
        bench = Bench(ENGINE, program(ENGINE), Path(folder))

        def measure(case: tuple[int, str]) -> None:
            document = scenario(*case)
            measured = rows_of(*case, document, bench.run(document), now)
            with lock:
                rows[case] = measured
                done = itertools.chain.from_iterable(rows.get(case, []) for case in cases)
                write_table(table, done, BBR_SHARE_COLUMNS)
            shares = [row["bbr_share"] for row in measured]
            print(*shares, measured[0]["law"], *case, flush=True)

        list(pool.map(measure, [case for case in cases if case not in rows]))


if __name__ == "__main__":
    main()
