"""The connector `feed`: RSS, Atom and JSON Feed."""

from penstock.connectors.feed.connector import Feed

__all__ = ["Feed"]
