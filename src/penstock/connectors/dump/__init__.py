"""The connector `dump`: large tables and archives, a record for each row."""

from penstock.connectors.dump.connector import Dump

__all__ = ["Dump"]
