"""Pages: the typed view that each template shows.

In: the judged results and the studies, as a `Source`. Out: dataclasses whose fields templates show.
Never here: nothing is judged or counted anew, and no markup is written. To add a page, write its
view here, its template in `templates/`, and its writer in `render.py`.
"""
