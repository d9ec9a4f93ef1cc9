"""Charts, each a `Figure` with its data, a Vega-Lite chart and a description.

To add one, write a function that returns `make_figure(...)`. `experiment.py` lists the charts of
each type of experiment.
"""
