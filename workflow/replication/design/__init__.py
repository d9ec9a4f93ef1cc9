"""Decide what is run: configuration, designs, batches, and the names of files.

In: `configs/` and the installed engines. Out: the `Pipeline` that the Snakefile reads.
"""
