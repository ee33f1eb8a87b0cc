"""Crash sweeps: a whole small run, interrupted at each of its writes, and what is left of it.

In:    the number of a write, sync or read, and what happens there: a kill, a power cut, an error.
Out:   what was acknowledged and is not there, and where the finished run differs from an undisturbed one.
Never: a process of its own, real time, the network, a project of anybody's.

    python -m penstock.testing.crash kill --points 200
"""
