"""Run scenarios, natively or in containers, and gather their tables.

In: a batch of scenarios, and an engine's program or image. Out: a store of finished runs, and the
tables of each batch. Never here: no number is judged or averaged, and no finished run is
made again.
"""
