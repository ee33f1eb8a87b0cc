"""Headers that go out with requests, of sources and of hooks."""

from __future__ import annotations

import re

from penstock.settings.document import join
from penstock.settings.section import Section, describe, text_of

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def read_headers(section: Section) -> dict[str, str]:
    entry = section.get("headers")
    if entry is None:
        return {}
    if not isinstance(entry.value, dict):
        raise section.error("headers", f"must be a mapping, not {describe(entry)}")
    headers: dict[str, str] = {}
    for name, inner in entry.value.items():
        path = join(section.path, f"headers.{name}")
        if not _NAME.fullmatch(name):
            raise inner.error(path, "is not the name of a header")
        headers[name] = text_of(inner, path)
        # A line break here would let a value smuggle further headers into every request.
        if not headers[name].isprintable():
            raise inner.error(path, "must be one line of printable text")
    return headers
