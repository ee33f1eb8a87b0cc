"""The keys of a source of market data."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from penstock.connectors.market.events import NUMBERS
from penstock.errors import ConfigError
from penstock.jobs.windows import moment
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import (
    SECRET,
    Keys,
    Reads,
    TextForm,
    Usual,
    about,
    between,
    no_less,
)
from penstock.settings.document import Entry
from penstock.settings.kinds import Calendar, Duration, read_names, texts_by_name, texts_schema
from penstock.settings.section import Section, describe, read_text

DAY_S = 86_400.0
FIELDS = ("timestamp", "symbol", "event_type", "sequence", "text", *NUMBERS)


def _read_address(entry: Entry, path: str) -> str:
    url = read_text(entry, path)
    if not url.lower().startswith(("http://", "https://")):
        raise entry.error(path, "must be an address such as https://api.example.com/bars/{symbol}")
    return url


def _read_socket(entry: Entry, path: str) -> str:
    url = read_text(entry, path)
    if not url.lower().startswith(("ws://", "wss://")):
        raise entry.error(path, "must be an address such as wss://stream.example.com/")
    return url


def _read_symbols(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "symbols", read_text)
    if len(set(found)) < len(found):
        raise entry.error(path, "has one of them twice")
    return found


def _read_fields(entry: Entry, path: str) -> dict[str, str]:
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be a mapping, not {describe(entry)}")
    for name, inner in entry.value.items():
        if name not in FIELDS:
            raise inner.error(f"{path}.{name}", f"is not one of {', '.join(FIELDS)}")
    return {name: read_text(inner, f"{path}.{name}") for name, inner in entry.value.items()}


def _start(text: str) -> str:
    try:
        moment(text, "UTC")
    except (ValueError, OverflowError):
        raise ConfigError(f"must be a day or a time such as 2026-01-31, not {text!r}") from None
    return text


Address = Annotated[str, Reads(_read_address, lambda _: {"type": "string", "minLength": 1})]
Start = Annotated[str, TextForm(_start, "2026-01-31")]


class RowKeys(Keys, frozen=True):
    """Where the rows of a page of JSON are, and what their fields are called."""

    rows: Annotated[
        str,
        about("path of the list of rows in the answer: `data.bars`"),
        Usual("the answer is the list"),
    ] = ""
    next: Annotated[
        str,
        about("path of the token or address of the next page"),
        Usual("none: with `{page}` in the address, pages are numbered until one is empty"),
    ] = ""
    first_page: Annotated[str, about("what stands for `{page}` in the first address")] = "1"
    fields: Annotated[
        dict[str, str],
        Reads(_read_fields, texts_by_name),
        about(
            "path of each field in a row: `{timestamp: t, open: o, close: c}`, or its place in a row that "
            "is a list: `{timestamp: '0'}`"
        ),
        Usual("our names; of lists timestamp, open, high, low, close, volume"),
    ] = msgspec.field(default_factory=dict)


class ActionKeys(RowKeys, frozen=True, kw_only=True):
    """Where splits and dividends are."""

    url: Annotated[Address, about("address of splits and dividends, with `{symbol}`")]


class ListingKeys(Keys, frozen=True, kw_only=True):
    """Where the symbols are."""

    url: Annotated[Address, about("address of the list of symbols")]
    rows: Annotated[str, about("path of the list in the answer"), Usual("the answer")] = ""
    next: Annotated[str, about("path of the next page's token or address"), Usual("none")] = ""
    symbol: Annotated[str, about("path of the symbol in a row that is no text")] = "symbol"


class LiveKeys(Keys, frozen=True, kw_only=True):
    """A stream over a websocket."""

    url: Annotated[
        str,
        Reads(_read_socket, lambda _: {"type": "string", "minLength": 1}),
        about("address of the websocket: `wss://stream.example.com/`"),
    ]
    subscribe: Annotated[
        str,
        about(
            "message that begins it, for the provider `json`; `{symbols}` and `{last}` (the last sequence of "
            "each symbol) stand for JSON"
        ),
        Usual("none"),
    ] = ""
    rows: Annotated[
        str, about("path of the rows in a message, for `json`"), Usual("the message")
    ] = ""
    heartbeat: Annotated[
        Duration,
        no_less(0.05),
        about("reconnect if nothing comes for so long while the exchange is open"),
    ] = 30.0
    reorder: Annotated[
        int,
        between(0, 100_000),
        about("events of a symbol that may come before one that is missing, until it is a gap"),
    ] = 100
    patience: Annotated[
        Duration, no_less(0.01), about("how long one that is missing is waited for")
    ] = 2.0


class ReconcileKeys(Keys, frozen=True, kw_only=True):
    """Another source that has bars of the same symbols."""

    source: Annotated[str, about("the other source of market data")]
    collection: Annotated[
        str | None, about("its collection, if it has a name of its own"), Usual("the source's name")
    ] = None
    label: Annotated[
        str | None, about("its `label`, if it has one"), Usual("the source's name")
    ] = None
    tolerance: Annotated[
        float,
        between(0, 1),
        about("how far two values may differ, as a part of the larger one, and still agree"),
    ] = 0.0001


class MarketKeys(ConnectorKeys, frozen=True, kw_only=True):
    """Bars or ticks of symbols."""

    provider: Annotated[
        str,
        about(
            "`json` (described by the keys below), `plain`, `folder`, or a class of yours: `module:Class`"
        ),
    ] = "json"
    label: Annotated[
        str | None,
        about("name of the provider in keys of records"),
        Usual("the name of the source"),
    ] = None
    url: Annotated[
        Address | None,
        about(
            "address of history; for `json` with `{symbol}`, `{start}`, `{end}` (also `_s`, `_ms`, `_day`), "
            "`{interval}` (seconds) and `{page}`; for `plain` what its paths come after"
        ),
        Usual("none"),
    ] = None
    folder: Annotated[
        str | None,
        about("folder of the provider `folder`, relative to penstock.yaml"),
        Usual("none"),
    ] = None
    files: Annotated[
        Literal["csv", "json", "jsonl"], about("format of the files of the provider `folder`")
    ] = "csv"
    symbols: Annotated[
        tuple[str, ...],
        Reads(_read_symbols, texts_schema, list),
        about("which symbols: `[ACME, GLOBEX]`"),
        Usual("those that the provider lists"),
    ] = ()
    kind: Annotated[Literal["bars", "ticks"], about("what the history is made of")] = "bars"
    interval: Annotated[Duration, no_less(1.0), about("length of a bar")] = DAY_S
    start: Annotated[Start, about("when history begins: `2026-01-31`")]
    window: Annotated[
        Duration,
        about("stretch of time that is asked for at once, for each symbol"),
        Usual("30d of bars of an hour or longer, 1d of others, 1h of ticks"),
    ] = 0.0
    overlap: Annotated[
        Duration,
        about(
            "how much before its checkpoint an incremental run reads again, for late corrections"
        ),
    ] = DAY_S
    calendar: Annotated[
        Calendar | None,
        about(
            "the exchange: `XNYS`; nothing is asked for, and no silence is a fault, while it is closed"
        ),
        Usual("always open"),
    ] = None
    adjust: Annotated[
        Literal["none", "split", "all"],
        about(
            "adjusted bars in the collection `….adjusted`: for splits, or `all` for dividends too"
        ),
    ] = "none"
    reconcile: Annotated[
        ReconcileKeys | None,
        about(
            "another source that the bars are compared with; what differs is in `….reconciliation`"
        ),
    ] = None
    token: Annotated[
        str | None,
        SECRET,
        about("sent as `Authorization: Bearer …` to the provider: `${MARKET_TOKEN}`"),
        Usual("none"),
    ] = None
    format: Annotated[RowKeys, about("for `json`: how its pages are read")] = RowKeys()
    listing: Annotated[ListingKeys | None, about("for `json`: where symbols are listed")] = None
    actions: Annotated[ActionKeys | None, about("for `json`: where splits and dividends are")] = (
        None
    )
    live: Annotated[LiveKeys | None, about("the stream, which runs of kind `stream` follow")] = None

    @classmethod
    def refuse(cls, at: Section) -> None:
        provider = at.get("provider")
        name = provider.value if provider is not None else "json"
        needed = {"json": "url", "plain": "url", "folder": "folder"}.get(str(name))
        if needed is not None and not at.has(needed):
            raise at.error(needed, f"is missing; the provider {name} needs it")

    def headers_for(self) -> dict[str, dict[str, str]]:
        """The token, for the origins of the provider alone."""
        if self.token is None:
            return {}
        places = (self.listing, self.actions, self.live)
        addresses = [self.url, *(each.url for each in places if each is not None)]
        headers = {"Authorization": f"Bearer {self.token}"}
        return {_origin(address): headers for address in addresses if address}

    @property
    def window_s(self) -> float:
        if self.window:
            return max(self.window, 1.0)
        if self.kind == "ticks":
            return 3600.0
        return 30 * DAY_S if self.interval >= 3600.0 else DAY_S


def _origin(address: str) -> str:
    """Of a websocket, that of the request which it begins with."""
    url = urlsplit(address)
    scheme = {"ws": "http", "wss": "https"}.get(url.scheme.lower(), url.scheme.lower())
    return f"{scheme}://{url.netloc.lower()}"


def keys_from(options: Any) -> MarketKeys:
    """The keys of a source, as its settings keep them."""
    return msgspec.convert(options, MarketKeys)
