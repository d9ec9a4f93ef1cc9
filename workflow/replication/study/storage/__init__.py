"""Files that later stages trust: written whole, sealed, and read only as they were written.

In: rows, frames, documents. Out: CSV, Parquet, JSON and YAML files with their seals.
"""
