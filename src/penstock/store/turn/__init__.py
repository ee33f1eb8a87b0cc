"""The turn: one transaction that settles what ended and claims what may start. The hot path of the store.

In:    a worker, the ends of its attempts, its free capacity, the limits of lanes.
Out:   a Turn: what was accepted, what came too late, what is to be started.
Never: a statement per job where one for the batch does.

`turn.turn` reads as the list of its steps; each step is a module here.
"""
