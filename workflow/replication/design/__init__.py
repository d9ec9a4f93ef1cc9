"""Decides what is run: configuration, designs, batches, and the names of all files.

In: `configs/`, the engines that are there. Out: the `Pipeline` that the Snakefile asks. To add a
setting of `config.yaml`, open `config.py`; a rule's names and hashes are in `pipeline.py`.
"""
