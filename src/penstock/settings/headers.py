"""Headers that go out with requests, of sources and of hooks, and the origins that they are for."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from penstock.settings.declaration import SECRET, Reads
from penstock.settings.document import Entry, join
from penstock.settings.kinds import by_name, texts_by_name
from penstock.settings.secrets import MASK
from penstock.settings.section import describe, text_of

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Headers(dict[str, str]):
    """Request headers; their values are often credentials, so `repr` masks them."""

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, MASK))


# They tell no secret: every host may be told what can be read and who asks.
HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})


def read_headers(entry: Entry, path: str) -> dict[str, str]:
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be a mapping, not {describe(entry)}")
    headers: dict[str, str] = {}
    for name, inner in entry.value.items():
        at = join(path, name)
        if not _NAME.fullmatch(name):
            raise inner.error(at, "is not the name of a header")
        headers[name] = text_of(inner, at)
        # A line break here would let a value smuggle further headers into every request.
        if not headers[name].isprintable():
            raise inner.error(at, "must be one line of printable text")
    return headers


def read_headers_for(entry: Entry, path: str) -> dict[str, dict[str, str]]:
    """The headers of each origin, as `https://api.example.com`."""
    if not isinstance(entry.value, dict):
        problem = f"must be a mapping of origins to headers, not {describe(entry)}"
        raise entry.error(path, problem)
    return {
        _origin(name, inner, join(path, name)): read_headers(inner, join(path, name))
        for name, inner in entry.value.items()
    }


def _origin(name: str, entry: Entry, path: str) -> str:
    try:
        url = urlsplit(name.strip().lower())
        is_origin = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_origin = False
    if not is_origin or url.username is not None or url.path.strip("/") or url.query:
        raise entry.error(path, "must be an origin such as https://api.example.com")
    return f"{url.scheme}://{url.netloc}"


HeaderValues = Annotated[dict[str, str], Reads(read_headers, texts_by_name), SECRET]
HeadersFor = Annotated[
    dict[str, dict[str, str]],
    Reads(read_headers_for, lambda ref: by_name(texts_by_name(ref))),
    SECRET,
]
