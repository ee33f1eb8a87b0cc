"""The engine: one loop that settles what ended and starts what may start.

In:    a project and its store.
Out:   finished runs.
Never: SQL; user code inside a transaction; a clock, a die or a network of its own.
"""
