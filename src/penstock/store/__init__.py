"""The store: the only room that speaks SQL.

In:    outcomes of attempts, work to enqueue, an operator's commands; always in the words of the domain.
Out:   claimed jobs, and rows to show.
Never: user code, the network or an `await` inside a transaction; an `execute(query)` for others.
"""
