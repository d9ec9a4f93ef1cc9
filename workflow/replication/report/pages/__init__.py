"""Pages: what each template shows, as plain data.

In: a `Source` of results. Out: one view a page, for the template of its name. To add a page, write
its view here, its template in `templates/` and what writes it in `render.py`.
"""
