"""Site agents: learn how a site is built, check it, extract by it, and notice when it has changed.

In:    pages as they were fetched, what is known of a site, and what a person decided.
Out:   a site schema as plain data, records by it, scores, notes about images, proposals.
Never: a way to the network of its own (a step's `ctx` fetches), SQL, a clock, a guess: what is not
       found is null.
"""
