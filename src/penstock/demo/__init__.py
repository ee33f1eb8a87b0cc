"""Demo: a small site to ingest, good and bad, and the projects a newcomer starts from.

In:    a folder.
Out:   three hosts on loopback that behave the same way every time, and template files.
Never: the outside network, or anything that a user's own project could not do.
"""
