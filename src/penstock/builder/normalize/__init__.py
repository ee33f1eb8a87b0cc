"""Normalised values: one spelling for one thing.

In:    text as others write it.
Out:   the value in one spelling, or None.
Never: a guess. What can't be read for certain is None, and so is a placeholder such as `n/a`.
"""
