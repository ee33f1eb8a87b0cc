"""The outlook: why a source, a run or a job does not start now, and what opens the gate.

In:    the facts of a source, its run and its job, its lane, and what the next turn would start.
Out:   every gate before the next start, in the order in which they are asked, and the one that decides.
Never: SQL, the clock, the network. A gate of the claim is asked by the claim's own function.
"""
