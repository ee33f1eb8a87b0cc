"""Rows of pages: companies that a directory or a profile page lists.

In:    HTML of others.
Out:   raw rows under the names of our fields, for `normalize.standardize`.
Never: following a link, reading more of a page than is bounded.
"""
