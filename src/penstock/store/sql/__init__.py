"""Queries that both databases understand as they are, one file per noun.

In:    tables as Postgres needs them (`penstock.job`), values as SQLite needs them (`:now`).
Out:   the spelling of each database, made once when the queries are loaded.
Never: a query that one of the two plans worse than it would one of its own.
"""
