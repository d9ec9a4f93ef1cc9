"""Why: the best explanation of a study's gaps, searched over its atoms (`judge.causes.atom`).

In: `configs/explanations/<study>.yaml`, the published numbers, the store of runs. Out: an
explanation, what it explains of what the search did not see, and all that was tried. `search.py`
holds the order of work; nothing in it asks a clock, so that the same inputs give the same bytes.
"""
