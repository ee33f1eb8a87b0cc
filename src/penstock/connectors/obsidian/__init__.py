"""The connector `obsidian`: notes of a vault, its attachments, and the graph of its links."""

from penstock.connectors.obsidian.connector import Obsidian

__all__ = ["Obsidian"]
