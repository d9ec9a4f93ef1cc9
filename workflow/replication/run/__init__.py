"""Runs scenarios, natively or in containers, and gathers their tables.

In: a batch of scenarios and an engine's program or image. Out: a store of finished runs and one
Parquet table a batch. To add a runtime, add its command to `COMMANDS` in `engines/image.py` and its
command line to `container.py`; `launcher.py` chooses between them.
"""
