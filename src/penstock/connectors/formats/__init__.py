"""Formats: what bytes say, as a document.

In:    the name and the bytes of a file or page, whoever made them.
Out:   a Parsed: kind, title, text, links, data, meta.
Never: opening a file, following a link, running what is in a document.
"""

from penstock.connectors.formats.kinds import kind_of, parse
from penstock.connectors.formats.parsed import Parsed

__all__ = ["Parsed", "kind_of", "parse"]
