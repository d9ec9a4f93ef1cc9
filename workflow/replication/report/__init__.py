"""The report: charts, notebooks, pages, and the release that is packed from them.

Judged results come in: `data/reproduced`, or the released data, with their studies and provenance.
Out go `reports/html`, `provenance.json`, and the release with its manifest and RO-Crate. Nothing is
simulated, judged or counted here: verdicts and counts come from `verdicts`, `compare` and
`explore`, and a page puts them into words and pictures.

To add a chart, open `charts/`; a page, `pages/`; a notebook, `notebooks/`. `render.py` puts
everything together.
"""
