"""Galleries: whether the images that a schema finds are photos of the item, and what to exclude if not.

In:    pages of a domain, its schema, and the bytes of some images as they were fetched.
Out:   findings: images of a selector that are not photos of the item, why, and selectors that exclude them.
Never: the network, a clock, a decoder for bytes that were not measured first.

`addresses_of` says which images to fetch, `look` reads the bytes of one (in a thread: `ctx.in_thread`), and
`check` compares what was found. All three take pages as `learn.Sample`.
"""
