"""Regions: where a claim holds, over two ranges and the levels of further axes.

In: `configs/regions/<region>.yaml`, `configs/regions.yaml`, the store of runs. Out: for each region
and engine a response surface of the compared quantity, the contour of its threshold, and its
validation at random points. Never: a result depends on the time of day, so the same inputs give the
same bytes. A further kind of axis belongs in `region_model.py` and `space.py`, a law in `space.py`.
"""
