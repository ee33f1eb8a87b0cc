"""The provider `plain`: the format that needs no description, because its fields have our names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec

from penstock.connectors.market.provider import (
    Frame,
    Page,
    Provider,
    Subscription,
    decoded,
    event_of,
    rows_page,
    usual_type,
)
from penstock.jobs.failures import BadData, Permanent
from penstock.jobs.windows import written as written_moment

if TYPE_CHECKING:
    from penstock.jobs.windows import Window


class Plain(Provider):
    """`GET url/history/SYMBOL`, `/symbols`, `/actions/SYMBOL`: {"rows": […], "next": "…"}."""

    def historical(self, window: Window, symbol: str, page: str) -> str:
        about = {
            "from": written_moment(window.start),
            "to": written_moment(window.end),
            "kind": self.keys.kind,
        }
        if self.keys.kind == "bars":
            about["interval"] = f"{self.keys.interval:g}"
        return self._address(f"history/{quote(symbol, safe='')}", about, page)

    def parse(self, body: bytes, symbol: str, page: str) -> Page:
        rows, next_page = _rows(body)
        return rows_page(rows, symbol, usual_type(self.keys), next_page)

    def symbols(self, page: str) -> str:
        return self._address("symbols", {}, page)

    def parse_symbols(self, body: bytes, page: str) -> tuple[list[str], str]:
        rows, next_page = _rows(body)
        if not all(isinstance(row, str) for row in rows):
            raise BadData("the listing has symbols that are no text", cause="bad listing")
        return rows, next_page

    def adjustments(self, symbol: str, page: str) -> str:
        return self._address(f"actions/{quote(symbol, safe='')}", {}, page)

    def subscription(self, symbols: Sequence[str], last: Mapping[str, int]) -> Subscription:
        if self.keys.live is None:
            raise Permanent(
                "this source has no stream: set live: {url: wss://…}", cause="no stream"
            )
        wanted = {"subscribe": list(symbols), "after": dict(last)}
        return Subscription(url=self.keys.live.url, messages=[msgspec.json.encode(wanted).decode()])

    def parse_frame(self, message: str) -> Frame:
        """{"rows": […]}, {"heartbeat": …}, {"session": "closed"} or {"error": "…"}."""
        found = decoded(message)
        if not isinstance(found, dict):
            raise BadData("a message of the stream is no object", cause="bad message")
        if problem := found.get("error"):
            return Frame(problem=str(problem)[:200])
        rows: Any = found.get("rows")
        events, refused = [], []
        for row in rows if isinstance(rows, list) else []:
            try:
                events.append(event_of(row, "", usual_type(self.keys)))
            except ValueError as error:
                refused.append(str(error))
        return Frame(events=events, refused=refused, is_closed=found.get("session") == "closed")

    def _address(self, path: str, about: Mapping[str, str], page: str) -> str:
        given = {**about, "page": page} if page else dict(about)
        query = f"?{urlencode(given)}" if given else ""
        return f"{(self.keys.url or '').rstrip('/')}/{path}{query}"


def _rows(body: bytes) -> tuple[list[Any], str]:
    found = decoded(body)
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise BadData('the provider\'s answer has no list "rows"', cause="no rows")
    return rows, str(found.get("next") or "")
