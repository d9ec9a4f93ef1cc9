"""Pages that set engines, versions, traces and whole runs side by side.

In: the tables of the room `compare`. Out: one view a page, as the other pages have it.
"""
