"""The steps of the builder: what its registry names.

In:    items of the steps before, and a job as params.
Out:   items for the steps after, and records: rows, companies, and what a run came to.
Never: a request that is not the context's (limits, budgets, snapshots and replay are), or a company that is
       left out without a word.
"""
