"""The report: charts, notebooks, pages, and the release that is packed from them.

In: judged results. Out: `reports/html`, `provenance.json`, the release. To add a chart, open
`charts/`; a page, `pages/`; a notebook, `notebooks/`. `render.py` puts everything together.
"""
