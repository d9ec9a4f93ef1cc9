"""The replication of published TCP studies, in rooms that import only downwards.

    cli -> report -> sensitivity -> compare -> judge -> plan -> run -> measure -> engines -> study

Each room's `__init__.py` says what goes in, what comes out, and where to add something.
"""

import os

# No array of ours is large enough for NumPy's threads, and starting them takes a good part of the
# start of a batch; nor may results hang on how many there are.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
