"""Runs scenarios, natively or in containers, and gathers their tables.

In: a batch of scenarios and an engine's program or image. Out: a store of finished runs and one
Parquet table a batch. `process` is the runner, which the images hold too; `runtime` starts it here
or by `container`; `run` runs a batch through it into the `store`.
"""
