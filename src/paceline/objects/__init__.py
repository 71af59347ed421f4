"""What travels between the stops: objects, their wire form and the algebra on them.

In     JSON-shaped dicts from the wire, typed values from the other packages.
Out    the same, checked, compared, patched, selected; no other package redefines these words.
Never  reads a clock, a file it does not ship, or knows what training is.
"""
