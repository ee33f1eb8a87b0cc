"""Git repositories: their branches, trees and blobs, over HTTP or from a folder.

In:    an address that speaks git's protocol version 2, or the path of a repository.
Out:   the commit of a branch, the entries of its tree, and the bytes of a blob.
Never: a connection of dulwich's own, a checkout, a hook or filter that is run.
"""

from penstock.connectors.github.git.local import LocalRepository
from penstock.connectors.github.git.remote import RemoteRepository

GitRepository = LocalRepository | RemoteRepository

__all__ = ["GitRepository", "LocalRepository", "RemoteRepository"]
