"""Raw samples: what the kernel said of a testbed's connections by `ss -ti`, next to our runs.

Of each flow data/published/STUDY/raw_samples.csv has one row, which
workflow/scripts/transcribe_raw_samples.py made of its authors' recordings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replication.study.storage.table import read_frame

if TYPE_CHECKING:
    from replication.compare.trace_comparison import TraceComparison

TRANSCRIBED = "data/published/{}/raw_samples.csv"
SAMPLES = "trace_samples.csv"
_THEIRS = ("minrtt_s", "first_pacing_rate_bps", "first_busy_s", "first_cwnd_segments")
#: A longer round trip has met a queue: 10 ms are less than a packet takes at 1 Mbit/s.
_EMPTY_PATH_S = 0.01
#: What Linux paces at before the first loss, in windows a round trip: tcp_pacing_ss_ratio; 2/ln 2.
_PACING_GAIN, _BBR_GAIN = 2.0, 2 / math.log(2)


def sample_rows(
    study: str, comparison: TraceComparison, transcribed: pd.DataFrame
) -> Iterator[dict[str, object]]:
    """Yield a row of `SAMPLES` for each engine: the published first samples of a flow, and ours.

    Our round trip is that of a small packet on the empty path, by delays and jitter of the
    scenarios; our pacing rate is the kernel's rule for the first window over that round trip. Our
    window is interpolated at the age of the published sample. A published flow first sends its
    cookie, which ours do not, and the kernel counts that round trip as busy too: it is taken off.
    """
    published = comparison.published
    is_it = (transcribed["trace"] == published.trace) & (transcribed["flow"] == published.flow)
    for theirs in transcribed[is_it].to_dict("records"):
        was_empty = theirs["minrtt_s"] < _EMPTY_PATH_S
        cookie_s = theirs["cookie_rtt_s"]
        age_s = theirs["first_busy_s"] - (0 if math.isnan(cookie_s) else cookie_s)
        for engine in comparison.engines:
            ours = [flow for flow, _ in comparison.ours if flow.engine == engine]
            windows = [flow.window_at(age_s) for flow in ours]
            low = min(flow.empty_rtt_s[0] for flow in ours)
            high = max(flow.empty_rtt_s[1] for flow in ours)
            gain = _BBR_GAIN if ours[0].congestion_control == "bbr" else _PACING_GAIN
            bits = gain * 8 * theirs["mss_bytes"] * ours[0].first_window_segments
            yield {
                **{"study": study, "trace": published.trace, "flow": published.flow},
                **{"engine": engine, "n": len(ours)},
                **{name: theirs[name] for name in _THEIRS},
                "our_rtt_low_s": low if was_empty else math.nan,
                "our_rtt_high_s": high if was_empty else math.nan,
                "our_pacing_low_bps": bits / high if was_empty else math.nan,
                "our_pacing_high_bps": bits / low if was_empty else math.nan,
                "our_cwnd_segments": float(np.mean(windows)),
            }


def read_transcribed(root: Path, study: str) -> pd.DataFrame | None:
    """Return the committed table of a study's raw samples; None where it has none."""
    path = root / TRANSCRIBED.format(study)
    return read_frame(path) if path.is_file() else None
