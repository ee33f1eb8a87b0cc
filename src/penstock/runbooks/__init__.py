"""Runbooks: what to do about a fault, as data.

In:    readings of signals, and the steps that are recorded as done.
Out:   whether the fault is there, the state of each step, and the step that is next.
Never: SQL, the clock, the network; nothing here acts.
"""
