"""Pages: the data that each template shows.

In: a `Source` of results. Out: one view for each page. To add a page, write its view here, its
template in `templates/`, and its writer in `render.py`.
"""
