"""The columns of the tables that stages hand on and others read (explained in data/README.md)."""

from __future__ import annotations

PUBLISHED_COLUMNS = ("table", "row", "column", "unit", "value", "printed", "place")
DESIGN_COLUMNS = (
    "study",
    "experiment",
    "point",
    "levels",
    "replicate",
    "engine",
    "scenario",
    "supported",
    "reason",
    "batch",
    "cost_s",
)
#: Numbers of an engine's flows.csv; `flow` and `kind` come before them.
FLOW_NUMBERS = (
    "throughput_bps",
    "goodput_bps",
    "delay_mean_s",
    "delay_p95_s",
    "rtt_mean_s",
    "packets_sent",
    "packets_received",
    "packets_dropped",
    "packets_in_flight",
    "retransmissions",
    "timeouts",
    "loss_rate",
    "delivery_ratio",
)
#: Numbers of an engine's series.csv; `time_s`, `flow` and `link` come before them.
SERIES_NUMBERS = (
    "throughput_bps",
    "cwnd_bytes",
    "ssthresh_bytes",
    "rtt_s",
    "delay_s",
    "queue_packets",
    "drops",
    "retransmissions",
)
FLOW_COLUMNS = ("scenario", "engine", "flow", "kind", *FLOW_NUMBERS)
SERIES_COLUMNS = ("scenario", "engine", "time_s", "flow", "link", *SERIES_NUMBERS)
CELL_COLUMNS = (
    "study",
    "table",
    "row",
    "column",
    "engine",
    "unit",
    "published",
    "published_half_ulp",
    "reproduced_mean",
    "reproduced_low",
    "reproduced_high",
    "n",
    "relative_deviation",
    "inside",
    "verdict",
    "reason",
)
CLAIM_COLUMNS = (
    "study",
    "claim",
    "quote",
    "place",
    "engine",
    "statistic",
    "observed",
    "low",
    "high",
    "margin",
    "verdict",
    "reason",
)
AUDIT_COLUMNS = (
    "study",
    "table",
    "row",
    "column",
    "check",
    "published",
    "bound",
    "finding",
    "reason",
)
