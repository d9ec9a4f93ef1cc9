"""Measures the project itself: `python -m bench --help`.

In: the built engines. Out: `bench.json`, `scale.json` and `reliability.json`, whose models are in
`replication.report.parts`, because pages read them. To add a measurement, write a function that
returns a `Figure` and call it in `bench.py`.
"""
