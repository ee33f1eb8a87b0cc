"""The connector `github`: repositories on GitHub by its API, and any git repository by git itself.

In:    repositories or their owner, and a token; or the address or path of a git repository.
Out:   issues, pull requests, comments, commits, releases and files as documents.
Never: a clone on disk, a request that is not http's, a program that is started.
"""

from penstock.connectors.github.connector import GitHub

__all__ = ["GitHub"]
