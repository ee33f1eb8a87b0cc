"""The connector `web`: the pages of a site."""

from penstock.connectors.web.connector import Web

__all__ = ["Web"]
