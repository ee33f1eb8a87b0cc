"""Pipelines: what is done, as a graph of named functions.

In:    functions decorated as steps.
Out:   a Graph of stages; the walk of an item through a stage, and the Effects it leaves behind.
Never: SQL, the network, threads or processes of its own, the system clock.
"""
