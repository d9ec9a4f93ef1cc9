"""`python -m replication.cli` is `replicate`."""

from replication.cli.main import main

main()
