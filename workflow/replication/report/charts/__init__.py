"""Charts, each a `Figure` with its data, a Vega-Lite chart and a description.

In: results, rows of verdicts, and what a chart declares that it draws (`DRAWN`). Out:
specifications in Vega-Lite, which `pages/page.py` turns into SVG and scripts. Never here: nothing
is judged, and no file is written. To add one, return `make_figure(...)` and add it to its type of
experiment in `experiment.py`.
"""
