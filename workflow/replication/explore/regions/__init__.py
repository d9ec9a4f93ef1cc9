"""Regions: where a claim holds, over two ranges and the levels of further axes.

In: `configs/regions/<region>.yaml`, `configs/regions.yaml`, the store of runs. Out: of each region
and engine a response surface of what the claim compares, the contour of its threshold, and a
validation at random points. `exploration.py` holds the order of work and what a claim compares;
nothing in it asks a clock, so that the same inputs give the same bytes. A further kind of axis:
`region_model.py` and `space.py`; a law: `space.py`; the model: `surface.py`.
"""
