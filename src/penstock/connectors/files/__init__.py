"""The connector `files`: a folder of files."""

from penstock.connectors.files.connector import Files

__all__ = ["Files"]
