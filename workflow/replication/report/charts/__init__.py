"""Charts: each is a `Figure` with its data, a Vega-Lite chart and a description.

To add a chart, write a function that returns `make_figure(...)`; `experiment.py` says which charts
each type of experiment has.
"""
