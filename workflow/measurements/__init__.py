"""Measurements of the engines, outside any study: what they show, and where they differ.

In: the engines that `make engines` has built, and conditions that are written down here. Out:
`data/conformance.csv`, `data/engine_differences.csv` and `data/bbr_shares.csv`, which are committed
and which the report shows. Nothing here is part of a report's run, and the package imports none of
it.
"""
