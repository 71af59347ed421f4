"""Generic Kubernetes objects: metadata, selectors, quantities, tables, schemas.

In     JSON-shaped dicts from the wire.
Out    the same objects validated, compared, patched and selected.
Never  reads a clock or a file it does not ship, or knows what training is.
"""
