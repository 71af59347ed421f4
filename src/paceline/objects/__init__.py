"""What travels between the stops: objects, their wire form and operations on them.

In     JSON-shaped dicts from the wire, typed values from the other packages.
Out    the same, validated, compared, patched, selected; no other package redefines these types.
Never  reads a clock, a file it does not ship, or knows what training is.
"""
