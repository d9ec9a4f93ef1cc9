"""Pages: the typed view that each template shows.

To add a page, write its view here, its template in `templates/`, and its writer in `render.py`.
"""
