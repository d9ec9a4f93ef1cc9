"""The replication of published TCP studies, in rooms that import only downwards.

cli, report, explore, compare, verdicts, design, simulate, metrics, engines, study
"""

import os

# No array of ours is large enough for NumPy's threads, and starting them takes a good part of the
# start of a batch; nor may results hang on how many there are.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
