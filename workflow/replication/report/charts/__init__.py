"""Charts, each a `Figure` with its data, a Vega-Lite chart and a description.

To add one, return `make_figure(...)` and add it to its type of experiment in `experiment.py`.
"""
