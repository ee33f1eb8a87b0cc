"""Audit: the journal as a chain of hashes, and what is wrong with it.

In:    rows of the journal, the seals over them, and heads that somebody has kept elsewhere.
Out:   the next seal; or findings, each of which names the row or seal that is not what was sealed.
Never: SQL, the clock, the network, files.
"""
