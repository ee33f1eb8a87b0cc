"""Canaries: which pages and sources a new release performs, and whether what it does is harmful.

In:    keys and shares; what came of the pages that each release performed.
Out:   who performs what, the same on every host; and a verdict with the figures it rests on.
Never: SQL, the clock, chance: a share is a hash, and the test is exact.
"""
