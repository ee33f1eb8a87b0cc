"""Models: what a language model proposes about a site is tried on pages like anything else.

In:    the fields that nothing was found for, some pages, and the tiers that the user pays for.
Out:   selectors that were right on pages the model has not seen, what was refused and why, and what it cost.
Never: a value that a model names, a selector that was not tried, a request around the source's limits.
"""
