"""Learning: a schema of a site from pages of it, without a model.

In:    pages with their addresses; for a site that changed, also values that were found before.
Out:   page types, fields with selectors and a confidence, selectors of images, the type of the site.
Never: the network, a clock, chance: the same pages make the same schema.
"""
