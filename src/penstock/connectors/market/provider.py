"""Providers: where the pages of a provider are, and how they are read. They do no requests themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.market.events import ACTIONS, BAR, NEEDED, Event, values_of, whole
from penstock.connectors.market.moments import moment_ns
from penstock.errors import ConfigError, nearest
from penstock.jobs.failures import BadData, Permanent

if TYPE_CHECKING:
    from penstock.connectors.market.keys import MarketKeys
    from penstock.jobs.windows import Window

BUILT_IN = {
    "plain": "penstock.connectors.market.plain:Plain",
    "json": "penstock.connectors.market.json_pages:JsonPages",
    "folder": "penstock.connectors.market.folder:Folder",
}
# Of the rows of one page that can't be used, so many are told one by one.
MOST_REFUSED = 20
MOST_TEXT = 10_000


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What one page says: events, what of it can't be used and why, and the token of the page after it."""

    events: list[Event] = []
    refused: list[str] = []
    next: str = ""


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """How a stream is begun: its address, and what is sent first."""

    url: str
    messages: list[str] = []
    headers: dict[str, str] = {}


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What one message of a stream says. `problem` ends the connection."""

    events: list[Event] = []
    refused: list[str] = []
    is_closed: bool = False
    problem: str = ""


class Provider(ABC):
    """Knows the addresses and the formats of one provider. It is made once for each source.

    Addresses are http or https, or files relative to penstock.yaml. A page token is whatever the page before
    said; the first page has none.
    """

    def __init__(self, keys: MarketKeys, source: str) -> None:
        self.keys = keys
        self.source = source

    @abstractmethod
    def historical(self, window: Window, symbol: str, page: str) -> str:
        """The address of a page of history."""

    @abstractmethod
    def parse(self, body: bytes, symbol: str, page: str) -> Page:
        """What such a page says. BadData if it is none."""

    def symbols(self, page: str) -> str:
        """The address of a page of the listing of symbols."""
        raise Permanent("this provider does not list its symbols; name them: symbols: [ACME]")

    def parse_symbols(self, body: bytes, page: str) -> tuple[list[str], str]:
        """The symbols of such a page, and the token of the page after it."""
        raise NotImplementedError

    def adjustments(self, symbol: str, page: str) -> str:
        """The address of a page of splits and dividends; empty if the provider has none."""
        return ""

    def parse_adjustments(self, body: bytes, symbol: str, page: str) -> Page:
        """What such a page says."""
        return self.parse(body, symbol, page)

    def subscription(self, symbols: Sequence[str], last: Mapping[str, int]) -> Subscription:
        """How to listen to these symbols; `last` is the sequence of the last event of each that is known."""
        raise Permanent("this provider has no stream")

    def parse_frame(self, message: str) -> Frame:
        """What a message of the stream says."""
        raise NotImplementedError


def provider_of(keys: MarketKeys, source: str, root: Path) -> Provider:
    """The provider of a source: one of our own, or `module:Class` of the project."""
    from importlib import import_module

    from penstock.pipeline.loader import import_beside

    name = BUILT_IN.get(keys.provider, keys.provider)
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ConfigError(
            f"there is no provider {keys.provider!r}, {nearest(keys.provider, BUILT_IN)}",
            "a class of the project is named as module:Class",
        )
    where = f"sources.{source}.provider"
    is_own = name != keys.provider
    loaded = import_module(module) if is_own else import_beside(module, root, where)
    found = getattr(loaded, attribute, None)
    if not isinstance(found, type) or not issubclass(found, Provider):
        raise ConfigError(f"{where}: {name} is no penstock.connectors.market.Provider")
    made: Provider = found(keys, source)
    return made


def rows_page(rows: Sequence[Any], symbol: str, usual: str, next_page: str = "") -> Page:
    """A page of rows that have our names of fields."""
    events, refused = [], []
    for row in rows:
        try:
            events.append(event_of(row, symbol, usual))
        except ValueError as error:
            refused.append(str(error))
    return Page(events=events, refused=refused, next=next_page)


def event_of(row: Any, symbol: str, usual: str) -> Event:
    """The event of a row with our names of fields; ValueError says what is wrong with it."""
    if not isinstance(row, Mapping):
        raise ValueError(f"a row is {row!r:.60}, no object")
    event_type = str(row.get("event_type") or usual)
    values = values_of(row)
    needed = NEEDED.get(event_type)
    if needed is not None and needed not in values:
        raise ValueError(f"a {event_type} has no {needed}")
    if event_type in ACTIONS and min(values[needed or ""], 1.0) <= 0:
        raise ValueError(f"a {event_type} has {needed} {values[needed or '']:g}")
    sequence = row.get("sequence")
    return Event(
        symbol=str(row.get("symbol") or symbol),
        at_ns=moment_ns(row.get("timestamp")),
        event_type=event_type[:40],
        sequence=None if sequence in (None, "") else whole("sequence", sequence),
        values=values,
        text=str(row.get("text") or "")[:MOST_TEXT],
    )


def usual_type(keys: MarketKeys) -> str:
    """What an event is that does not say it."""
    return BAR if keys.kind == "bars" else "trade"


def decoded(body: bytes | str) -> Any:
    """The JSON of a page; BadData if it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        start = body[:40].decode("utf-8", "replace") if isinstance(body, bytes) else body[:40]
        raise BadData(f"the provider's answer is no JSON: {start!r}", cause="no JSON") from None
