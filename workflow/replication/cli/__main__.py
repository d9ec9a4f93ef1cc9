"""The command line, as `python -m replication.cli`."""

from replication.cli.start import replicate

replicate()
