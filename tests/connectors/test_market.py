"""The connector `market`: the suite, windows, corrections, backfills, adjustments, two providers."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock.app import Project
from penstock.clock import SystemClock
from penstock.connectors.market.sessions import is_fault
from penstock.errors import ConfigError
from penstock.testing import RawResponse, Request, answer
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place, Trial
from tests.connectors.exchange import DAY_S, Exchange, iso
from tests.postgres.server import Server

SITE = "https://market.example"
# Midnight of the day on which virtual clocks begin.
TODAY = 1_800_000_000.0 - 1_800_000_000.0 % DAY_S


class MarketPlace(Place):
    """Each item is a symbol with one bar."""

    connector = "market"
    extra: dict[str, Any] = {}  # noqa: RUF012
    is_locked = False
    today = TODAY

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.exchange = Exchange([])

    def keys(self) -> dict[str, Any]:
        about = {"provider": "plain", "url": SITE, "start": iso(self.today), "window": "1d"}
        return {**about, "label": "sim", "token": "${SECRET}", **self.extra}

    def put(self, name: str, text: str) -> bool:
        if name not in self.texts:
            self.exchange.symbols.append(name)
        self.texts[name] = text
        self.exchange.bars[name] = [{"timestamp": iso(self.today), "close": 10, "text": text}]
        return True

    def remove(self, name: str) -> None:
        self.exchange.symbols.remove(name)
        del self.texts[name]

    def key(self, name: str) -> str:
        return f"sim|{name}|{iso(self.today)}|bar|"

    def lock(self) -> bool:
        self.is_locked = True
        return True

    def page(self, request: Request) -> RawResponse:
        if self.is_locked or request.headers.get("Authorization") != f"Bearer {self.secret}":
            return answer("", status=401)
        return self.exchange.get(request.url)


class TestMarket(ConnectorSuite):
    place = MarketPlace
    # Each is a symbol, and so a request.
    many = 30


class MarketOnPostgres(MarketPlace):
    """The same in a project whose store is a server, which has a clock of its own."""

    today = SystemClock().now() // DAY_S * DAY_S
    new_database: ClassVar[Callable[[], str]]

    def store(self) -> str:
        return type(self).new_database()


class TestMarketOnPostgres(ConnectorSuite):
    place = MarketOnPostgres
    many = 10
    writes = 2
    throttle_s = 3

    @pytest.fixture(autouse=True)
    def _databases(
        self, postgres: Server, schema_template: str, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        made: list[str] = []

        def new() -> str:
            made.append(f"market_{uuid.uuid4().hex}")
            return postgres.create_database(made[-1], schema_template)

        monkeypatch.setattr(MarketOnPostgres, "new_database", new, raising=False)
        yield
        for name in made:
            postgres.drop_database(name)


@pytest.mark.torture
class TestManySymbols(ConnectorSuite):
    place = MarketPlace
    # Each is a request, and the exchange is in the same process.
    many, writes = 1_500, ALL_WRITES


def trial_of(folder: Path, exchange: Exchange | None = None, **keys: Any) -> Trial:
    place = MarketPlace(folder)
    place.extra = keys
    if exchange is not None:
        place.exchange = exchange
    return Trial(folder, place)


def an_exchange(days: int = 10, symbols: tuple[str, ...] = ("ACME", "GLOBEX")) -> Exchange:
    """With a bar a day until yesterday."""
    exchange = Exchange(list(symbols), page_size=4)
    exchange.trade_days(TODAY - days * DAY_S, days)
    return exchange


def history(days: int = 10) -> dict[str, Any]:
    return {"start": iso(TODAY - days * DAY_S), "window": "5d", "overlap": "2d"}


def bars(trial: Trial, symbol: str, collection: str = "documents") -> dict[str, dict[str, Any]]:
    """The bars of a symbol by their timestamps."""
    with trial.project() as project:
        rows = project.connection.records.of(collection, "", 10_000)
        return {
            row.data["data"]["timestamp"]: row.data["data"]
            for row in rows
            if row.data["kind"] == "bar" and row.data["data"]["symbol"] == symbol
        }


def asked_windows(exchange: Exchange) -> list[str]:
    """The windows that were asked for, by the day that each begins on, for ACME."""
    return [
        url.partition("from=")[2][:10]
        for url in exchange.asked
        if "/ACME" in url and "page" not in url
    ]


def test_every_page_of_every_window_becomes_one_record_per_bar(tmp_path: Path) -> None:
    exchange = an_exchange()
    trial = trial_of(tmp_path, exchange, **history())
    assert trial.run().state == "completed"
    for symbol in exchange.symbols:
        found = bars(trial, symbol)
        assert [each["close"] for each in found.values()] == [
            row["close"] for row in exchange.bars[symbol]
        ]
    assert any("page=" in url for url in exchange.asked)
    assert all(version == 1 for _, version in trial.records().values())


def test_an_incremental_run_asks_for_what_is_new_and_for_the_overlap(tmp_path: Path) -> None:
    exchange = an_exchange()
    trial = trial_of(tmp_path, exchange, **history())
    trial.run()
    exchange.asked.clear()
    trial.clock.advance(6 * DAY_S)
    exchange.bars["ACME"].append({"timestamp": iso(TODAY + DAY_S), "close": 5})
    trial.run()
    windows = asked_windows(exchange)
    assert len(windows) < 4
    assert iso(TODAY + DAY_S) in bars(trial, "ACME")
    with trial.project() as project:
        source_id = project.connection.sources.ensure(["place"])["place"]
        cursors = project.connection.checkpoints.cursors(source_id)
    assert cursors["ACME"] >= iso(TODAY + 6 * DAY_S)


def test_a_late_correction_becomes_a_new_version_and_nothing_else_does(tmp_path: Path) -> None:
    exchange = an_exchange()
    trial = trial_of(tmp_path, exchange, **history())
    trial.run()
    before = trial.records()
    exchange.bars["ACME"][-1]["close"] = 1.5
    trial.run()
    after = trial.records()
    changed = {key for key in after if after[key] != before[key]}
    assert changed == {f"sim|ACME|{exchange.bars['ACME'][-1]['timestamp']}|bar|"}
    assert {after[key][1] for key in changed} == {2}


def test_a_window_that_failed_holds_the_checkpoint_and_is_read_by_the_next_run(
    tmp_path: Path,
) -> None:
    exchange = an_exchange(20)
    trial = trial_of(tmp_path, exchange, **history(20))
    first = TODAY - 20 * DAY_S
    exchange.broken = f"ACME?from={iso(first - first % (5 * DAY_S))[:10]}"
    assert trial.run().state == "partial"
    assert 15 < len(bars(trial, "ACME")) < 20
    exchange.broken = ""
    assert trial.run().state == "completed"
    assert len(bars(trial, "ACME")) == len(bars(trial, "GLOBEX")) == 20


def test_backfills_know_symbols_and_windows_and_fill_what_is_missing(tmp_path: Path) -> None:
    exchange = an_exchange()
    trial = trial_of(tmp_path, exchange, symbols=["ACME", "GLOBEX"], **history())
    with trial.project() as project:
        first, last = iso(TODAY - 10 * DAY_S), iso(TODAY - DAY_S)
        plan = project.backfills.plan("place", first, last)
        assert (plan.partitions, plan.window_s) == (["ACME", "GLOBEX"], 5 * DAY_S)
        started = project.backfills.start("place", first, last, ["ACME"])
        trial.work(project)
        assert started.run is not None
        assert project.require_run(started.run.id).state == "completed"
        before = trial.records()
        again = project.backfills.start("place", first, last, ["ACME"])
        trial.work(project)
        assert again.run is not None
        row = project.require_run(again.run.id)
        assert (row.options.reconciles, row.inserted, row.updated) == (started.run.id, 0, 0)
        assert trial.records() == before
        left = project.backfills.plan("place", first, last, missing=True)
        assert {gap.partition for gap in left.missing} == {"GLOBEX"}
    assert len(bars(trial, "ACME")) == 9
    assert bars(trial, "GLOBEX") == {}
    trial.run()
    assert len(bars(trial, "GLOBEX")) == 10


def test_rows_that_can_not_be_used_are_rejected_and_the_others_saved(tmp_path: Path) -> None:
    exchange = an_exchange(5, ("ACME",))
    rows = exchange.bars["ACME"]
    rows[0]["close"] = "NaN"
    rows[1]["close"] = None
    rows[2]["timestamp"] = rows[2]["timestamp"].replace("T", " ")
    rows.append({"timestamp": "soon", "close": 3})
    rows.append("x")  # type: ignore[arg-type]
    trial = trial_of(tmp_path, exchange, **history(5))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.connectors.exchange._is_within", lambda row, query: True)
        run = trial.run()
    assert run.state == "completed"
    assert len(bars(trial, "ACME")) == 3
    assert run.rejected >= 4


def test_while_the_exchange_is_closed_nothing_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("exchange_calendars")
    # From Friday, 8 January 2027 to the Thursday after it.
    exchange = an_exchange(7, ("ACME",))
    keys = {**history(7), "window": "1d", "calendar": "XNYS", "symbols": ["ACME"]}
    trial = trial_of(tmp_path, exchange, **keys)
    trial.run()
    days = {url.partition("from=")[2][:10] for url in exchange.asked}
    assert "2027-01-08" in days
    assert not {"2027-01-09", "2027-01-10"} & days
    with trial.project() as project:
        source_id = project.connection.sources.ensure(["place"])["place"]
        # Days on which there is no session do not hold the checkpoint.
        assert project.connection.checkpoints.cursors(source_id)["ACME"] > "2027-01-14"


def test_a_split_leaves_raw_bars_alone_and_derives_adjusted_ones_anew(tmp_path: Path) -> None:
    exchange = an_exchange(10, ("ACME",))
    trial = trial_of(tmp_path, exchange, adjust="split", **history())
    trial.run()
    raw = bars(trial, "ACME")
    adjusted = bars(trial, "ACME", "documents.adjusted")
    assert [each["close"] for each in adjusted.values()] == [each["close"] for each in raw.values()]
    split_at = exchange.bars["ACME"][6]["timestamp"]
    exchange.actions["ACME"] = [{"timestamp": split_at, "event_type": "split", "ratio": 4}]
    trial.run()
    assert bars(trial, "ACME") == raw
    for timestamp, bar in bars(trial, "ACME", "documents.adjusted").items():
        ratio = 4 if timestamp < split_at else 1
        assert bar["close"] == pytest.approx(raw[timestamp]["close"] / ratio)
        assert bar["volume"] == pytest.approx(raw[timestamp]["volume"] * ratio)
    assert trial.records()[f"sim|ACME|{split_at}|split|"][0]["data"]["ratio"] == 4


def test_dividends_adjust_the_prices_before_them_only_where_all_is_asked_for(
    tmp_path: Path,
) -> None:
    exchange = an_exchange(10, ("ACME",))
    paid_at = exchange.bars["ACME"][5]["timestamp"]
    before = exchange.bars["ACME"][4]["close"]
    exchange.actions["ACME"] = [{"timestamp": paid_at, "event_type": "dividend", "amount": 2}]
    trial = trial_of(tmp_path, exchange, adjust="all", **history())
    trial.run()
    raw, adjusted = bars(trial, "ACME"), bars(trial, "ACME", "documents.adjusted")
    for timestamp, bar in adjusted.items():
        factor = 1 - 2 / before if timestamp < paid_at else 1
        assert bar["close"] == pytest.approx(raw[timestamp]["close"] * factor)
        assert bar["volume"] == raw[timestamp]["volume"]


class TwoProviders(MarketPlace):
    """Two sources of the same symbols; the one that is tried is compared with the other."""

    connector = "market"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.other = Exchange([])

    def page(self, request: Request) -> RawResponse:
        asked = self.other if request.url.startswith("https://other.example") else self.exchange
        return asked.get(request.url)


def test_two_providers_are_compared_and_what_they_agree_on_again_is_settled(
    tmp_path: Path,
) -> None:
    place = TwoProviders(tmp_path)
    place.exchange, place.other = an_exchange(10, ("ACME",)), an_exchange(9, ("ACME",))
    place.other.bars = {"ACME": [dict(row) for row in place.exchange.bars["ACME"][:9]]}
    place.other.bars["ACME"][2]["close"] *= 1.01
    place.other.bars["ACME"][3]["close"] *= 1.00001
    missing = place.other.bars["ACME"].pop(5)["timestamp"]
    other = {"connector": "market", "provider": "plain", "url": "https://other.example"}
    place.extra = {**history(), "reconcile": {"source": "other"}}
    trial = Trial(tmp_path, place)
    written = json.loads((tmp_path / "penstock.yaml").read_text())
    written["sources"]["other"] = {**other, **history(), **place.about}
    (tmp_path / "penstock.yaml").write_text(json.dumps(written))

    def compared() -> dict[str, tuple[str, list[str]]]:
        with trial.project() as project:
            project.run("other")
            trial.work(project)
        run = trial.run()
        with trial.project() as project:
            rows = project.connection.records.of("documents.reconciliation", "", 100)
            signals = [each.name for each in project.connection.signals.after()]
        assert run.state == "completed"
        assert signals.count("quality.reconciliation") == 1
        return {
            row.data["timestamp"]: (row.data["status"], list(row.data["values"])) for row in rows
        }

    differs = place.exchange.bars["ACME"][2]["timestamp"]
    assert compared() == {differs: ("differs", ["close"]), missing: ("only_here", [])}
    place.other.bars["ACME"][2]["close"] = place.exchange.bars["ACME"][2]["close"]
    with trial.project() as project:
        project.run("other", "full")
        trial.work(project)
        project.run("place", "full")
        trial.work(project)
    assert compared() == {differs: ("agrees", []), missing: ("only_here", [])}


JSON = {
    "provider": "json",
    "url": SITE + "/v2/{symbol}?a={start_ms}&b={end_day}&p={page}",
    "format": {
        "first_page": "0",
        "rows": "data.items",
        "fields": {"timestamp": "t", "close": "ohlc.c", "open": "ohlc.o"},
    },
    "listing": {"url": SITE + "/list", "rows": "all", "symbol": "id"},
}


def test_a_provider_is_described_by_paths_and_templates(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, **{**JSON, **history(5), "window": "30d"})
    seconds = int(TODAY - DAY_S)
    pages = {
        "0": {"data": {"items": [{"t": seconds, "ohlc": {"o": "1.5", "c": 2}}]}},
        "1": {"data": {"items": [{"t": 1000 * seconds + 500, "ohlc": {"c": 3}}]}},
    }

    def get(url: str) -> RawResponse:
        if url.endswith("/list"):
            return answer(json.dumps({"all": [{"id": "A/B"}]}))
        found = pages.get(url.rpartition("p=")[2], {"data": {"items": []}})
        return answer(json.dumps(found if "/v2/A%2FB?a=17" in url else {}))

    trial.place.page = lambda request: get(request.url)  # type: ignore[method-assign]
    assert trial.run().state == "completed"
    found = bars(trial, "A/B")
    assert found[iso(seconds)] == found[iso(seconds)] | {"open": 1.5, "close": 2}
    assert {each["close"] for each in found.values()} == {2, 3}


def test_pages_that_go_in_a_circle_are_bad_data(tmp_path: Path) -> None:
    about = {**JSON, "symbols": ["A"], "format": {"rows": "rows", "next": "next"}}
    trial = trial_of(tmp_path, **{**about, **history(5), "window": "30d"})
    row = {"timestamp": iso(TODAY - DAY_S), "close": 1}
    body = json.dumps({"rows": [row], "next": "again"})
    trial.place.page = lambda request: answer(body)  # type: ignore[method-assign]
    run = trial.run()
    assert {job.kind for job in trial.jobs(run) if job.state == "quarantined"} == {"data"}
    assert len(trial.place.requests) < 10


PROVIDER = """
from penstock.connectors.market import Event, Page, Provider


class Lines(Provider):
    def historical(self, window, symbol, page):
        return f"./lines/{symbol}.txt"

    def parse(self, body, symbol, page):
        prices = enumerate(body.decode().split())
        at = 1_799_900_000
        return Page(events=[
            Event(symbol=symbol, at_ns=(at + number) * 10**9, values={"close": float(price)})
            for number, price in prices
        ])
"""


def test_a_class_of_the_project_is_a_provider(tmp_path: Path) -> None:
    (tmp_path / "lines_of_prices.py").write_text(PROVIDER)
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "ACME.txt").write_text("1 2 3")
    about = {"provider": "lines_of_prices:Lines", "symbols": ["ACME"], **history()}
    trial = trial_of(tmp_path, **about)
    assert trial.run().state == "completed"
    assert [each["close"] for each in bars(trial, "ACME").values()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("provider: json", "sources.a.url: is missing; the provider json needs it"),
        ("provider: folder", "sources.a.folder: is missing; the provider folder needs it"),
        (
            "provider: plian\n    url: https://x.example",
            "there is no provider 'plian', did you mean",
        ),
        ("url: x", "sources.a.url: must be an address such as"),
        ("url: https://x.example\n    symbols: [A, A]", "sources.a.symbols: has one of them twice"),
        (
            "url: https://x.example\n    format: {fields: {closing: c}}",
            "sources.a.format.fields.closing: is not one of timestamp, symbol",
        ),
        ("url: https://x.example\n    live: {url: https://x}", "must be an address such as wss://"),
        ("url: https://x.example\n    calendar: XNYZ", "sources.a.calendar: "),
    ],
)
def test_a_mistake_in_the_keys_is_said_in_one_line(tmp_path: Path, keys: str, problem: str) -> None:
    text = f"sources:\n  a:\n    connector: market\n    start: 2026-01-01\n    {keys}\n"
    (tmp_path / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(problem)), Project.open(tmp_path) as project:
        project.graph(project.source("a"))


OWN = """
from penstock import Pipeline

only = Pipeline("only")
both = Pipeline("both")


@only.step(after="read")
def history(document, ctx):
    ctx.save("own", key=document["key"], data=document)


@both.step(after=["read", "listen"], unit="page", key="key")
def everything(document, ctx):
    ctx.save("own", key=document["key"], data=document)
"""


def test_events_of_a_stream_that_no_step_gets_are_not_listened_to(tmp_path: Path) -> None:
    (tmp_path / "own_steps_of_market.py").write_text(OWN)
    live: dict[str, Any] = {"live": {"url": "wss://market.example/"}}
    for name, streams in (("only", []), ("both", ["listen"])):
        trial = trial_of(tmp_path, pipeline=f"own_steps_of_market:{name}", **live)
        with trial.project() as project:
            stages = project.graph(project.source("place")).stages
            assert [stage.name for stage in stages if stage.is_stream] == streams


def test_silence_is_a_fault_only_while_the_exchange_is_open() -> None:
    pytest.importorskip("exchange_calendars")
    at = {
        "monday": datetime(2026, 11, 16, 15, 0, tzinfo=UTC).timestamp(),
        "sunday": datetime(2026, 11, 15, 15, 0, tzinfo=UTC).timestamp(),
        "thanksgiving": datetime(2026, 11, 26, 15, 0, tzinfo=UTC).timestamp(),
    }
    found = {day: is_fault(31, 30, "XNYS", moment) for day, moment in at.items()}
    assert found == {"monday": True, "sunday": False, "thanksgiving": False}
    assert is_fault(31, 30, None, at["sunday"])
    assert not is_fault(29, 30, "XNYS", at["monday"])
    assert not is_fault(31, 30, "XNYS", at["monday"], is_closed=True)
