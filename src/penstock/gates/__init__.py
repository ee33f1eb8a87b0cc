"""Gates: may it start now, and if not, why and until when.

In:    the state of a lane: paused, cooling down, what is running, what is waiting.
Out:   how many jobs may start, or the gate that holds them back and when it opens.
Never: SQL, the clock, the network. The claim and the explanation call the same functions.
"""
