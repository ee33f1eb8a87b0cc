"""The journal: every kind of event, as data.

In:    what a verb of the store has done: one Struct of the registry for each event.
Out:   the data that is stored, and the sentence that a person reads, rendered from it.
Never: SQL, the clock, the network; nothing here writes or reads rows.
"""
