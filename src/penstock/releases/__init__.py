"""Releases: what an environment runs, named by the hash of its content.

In:    the files, configuration, schemas and versions of a project.
Out:   a manifest with its id, what of it one environment runs, and how two of them differ.
Never: reading files, the database, secrets.
"""
