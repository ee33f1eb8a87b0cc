"""The connector `headless`: the pages of a site as a browser shows them."""

from penstock.connectors.headless.connector import Headless

__all__ = ["Headless"]
