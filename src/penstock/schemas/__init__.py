"""Schemas: what the data of a collection looks like, and what it must look like.

In:    values as JSON has them, and schemas as JSON Schema writes them.
Out:   the shape of what was seen, a schema made from it, and what does not fit, with the path of the field.
Never: the clock, a database, the network, a regular expression that backtracks without bound.
"""
