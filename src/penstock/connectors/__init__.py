"""Connectors: code that can read one kind of place.

In:    the keys of a source, and a context whose `fetch` and `capture` store what they bring.
Out:   items (what is there, and by what it is recognised as changed) and documents (what was read).
Never: SQL, a way to the network of its own, writing anything to the place that is read.
"""

from penstock.connectors.contract import (
    Checkpoint,
    Connector,
    Document,
    Gone,
    Item,
    Listed,
    Place,
    Removed,
    Sample,
    Tombstone,
    Unlisted,
    Unvisited,
)
from penstock.connectors.target import Recognised, Target
from penstock.settings.connector import ConnectorKeys

__all__ = [
    "Checkpoint",
    "Connector",
    "ConnectorKeys",
    "Document",
    "Gone",
    "Item",
    "Listed",
    "Place",
    "Recognised",
    "Removed",
    "Sample",
    "Target",
    "Tombstone",
    "Unlisted",
    "Unvisited",
]
