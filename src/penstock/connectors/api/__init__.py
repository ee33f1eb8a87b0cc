"""The connector `api`: paginated JSON.

In:    an address, how its pages follow each other, and credentials that are sent and kept nowhere.
Out:   an item for each page, and a document for each record of it.
Never: a cursor beyond what was saved, a credential in an address, a page asked for without end.
"""

from penstock.connectors.api.connector import Api

__all__ = ["Api"]
