"""A page as it was fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import msgspec

from penstock.http.charset import decoded
from penstock.http.cookies import Cookie
from penstock.http.failures import FetchError

# To decode a longer body takes time that others miss.
_LONG = 262_144


@dataclass(frozen=True, slots=True)
class Response:
    """What a fetch brought. `url` is where the redirects ended; header names are in lower case."""

    url: str
    requested_url: str
    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    fetched_at: float
    is_from_snapshot: bool = False
    snapshot_id: int | None = None
    not_modified: bool = False
    content_hash: str = ""
    # Those that it brought for a session, and that are stored nowhere.
    cookies: tuple[Cookie, ...] = field(default=(), repr=False)
    # In an incremental run: it is as it was, and this very code and configuration is done with it.
    is_done: bool = False

    @property
    def content_type(self) -> str:
        """The media type alone, in lower case; empty if the server did not say."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, by the charset that was declared, else UTF-8."""
        began = perf_counter()
        text = decoded(self.body, self.headers.get("content-type", ""))
        if len(self.body) > _LONG:
            from penstock.http.pace import owe

            owe(perf_counter() - began)
        return text

    def json(self) -> Any:
        """The body as JSON; raises FetchError of kind `data` if it is not."""
        try:
            return msgspec.json.decode(self.body.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError) as error:
            message = f"the body is not JSON ({error})"
            raise FetchError(message, self.url, self.status, True, "data") from None
