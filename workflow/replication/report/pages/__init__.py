"""Pages: what each template shows, as plain data.

In: a `Source` of results. Out: one view a page, for the template of its name. To add a page, write
its view here and its template in `templates/`, and add it to `MEASURED_PAGES` in `render.py`.
"""
