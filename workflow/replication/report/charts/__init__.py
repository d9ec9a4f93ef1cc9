"""Charts: each is a `Figure` with its data, a Vega-Lite chart and a description.

In: results and cells as data frames. Out: figures for pages and notebooks. To add a chart, write a
function that returns `make_figure(...)`; `experiment.py` says which charts each type
of experiment has.
"""
