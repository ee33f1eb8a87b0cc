"""Bench: Penstock beside its peers, in one run, as medians and ratios.

In:    the installed Penstock and its peers.
Out:   a table on the terminal and in docs/benchmarks.md, and two plots.
Never: a pass or a fail. A missed target is printed as missed; nothing here is a timed test.

Every measurement (a side of a workload, once) runs in a process and a folder of its own, so none
inherits another's warm caches, garbage or reactor. Rounds are interleaved: a machine that gets
slower gets slower for all sides.
"""
