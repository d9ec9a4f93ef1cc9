"""Regions: where a claim holds, over two ranges and the levels of further axes.

In: `configs/maps/<map>.yaml`, `configs/mapping.yaml`, the store of runs. Out: of each map and
engine the verdicts at its points, the boundary between them, and a check of it at validation
points. `explore.py` holds the order of work; nothing in it asks a clock, so that the same inputs
give the same bytes. A further kind of axis: `map_model.py` and `space.py`; a law: `space.py`.
"""
