"""Jobs: the unit of work, and the rules of its life.

In:    what an attempt came to.
Out:   the state that leads to, when it is due again, and how a run ends.
Never: SQL, sleeping, reading the clock, the network.
"""
