"""Decide what is run: configuration, designs, batches, and the names of files.

In: `configs/` and the installed engines. Out: the `Plan` of a run, the `Start` of an engine's
process, and the `Pipeline` through which the Snakefile sees both. Never here: results are not read,
and no study's values are written in code.
"""
