"""Golden corpora: stored pages with the records that were approved for them, as files beside the code.

In:    pages from the snapshots of a project; today's extraction code.
Out:   files that are reviewed in a diff, and where new code makes other records of the same pages.
Never: the network, the project's store when it checks, a secret of the project in a file.
"""

from penstock.app.golden.golden import Golden

__all__ = ["Golden"]
