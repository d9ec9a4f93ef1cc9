"""The replication of published TCP studies, in rooms that import only downwards.

cli, report, explore, compare, verdicts, design, simulate, metrics, engines, study, base
"""

import os

# NumPy's threads slow down the start of a batch, and results must not depend on their number.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
