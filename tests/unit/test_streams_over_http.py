"""Server-sent events: nothing is lost or doubled, one reader serves all, and slow clients are dropped."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from penstock import Project
from penstock.app.journal_stream import EventFilter, JournalReader, Look, Placed
from penstock.app.views.journal import EventView
from penstock.errors import StoreError
from penstock.web import follower, streams
from penstock.web.follower import EventSubscription, Follower
from penstock.web.listener import DRAIN_S
from penstock.web.protocol import Connections
from tests.contract.scenes import PLAIN_STEPS
from tests.unit.test_web import Site, site, visit

FILE = "sources: {a: {pipeline: 'steps:plain'}, b: {pipeline: 'steps:plain'}}\n"
EVENTS = "/api/v1/events/stream"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setattr(follower, "LOOK_S", 0.01)
    monkeypatch.setattr(streams, "OVERVIEW_S", 0.01)
    (tmp_path / "steps.py").write_text(PLAIN_STEPS)
    (tmp_path / "penstock.yaml").write_text(FILE)
    with Project.open(tmp_path) as found:
        yield found


class Heard:
    """One stream, read message by message."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self) -> dict[str, str]:
        """The next message, by its fields; comments are under the empty name."""
        found: dict[str, str] = {}
        async with asyncio.timeout(30):
            while line := (await self._answer.content.readline()).decode():
                name, _, value = line.rstrip("\n").partition(":")
                if line == "\n" and (set(found) - {"retry"}):
                    return found
                if line != "\n":
                    found[name] = value.strip()
        return found

    async def kinds(self, number: int) -> list[str]:
        return [json.loads((await self.next())["data"])["kind"] for _ in range(number)]


@asynccontextmanager
async def listening(at: Site, path: str = EVENTS, **headers: str) -> AsyncIterator[Heard]:
    url = f"http://127.0.0.1:{at.port}{path}"
    async with at.browser.get(url, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        yield Heard(answer)


def act(project: Project, number: int = 1, source: str = "a", reason: str = "rest") -> None:
    for _ in range(number):
        project.sources.pause(source, actor="ann", reason=reason)
        project.sources.resume(source, actor="ann")


def test_stream_has_every_new_event_that_its_filter_wants(project: Project) -> None:
    act(project)

    async def steps(at: Site) -> None:
        await at.log_in()
        wanted = f"{EVENTS}?source=a&kind=source&where=data.reason%3Drest"
        async with listening(at, wanted) as some, listening(at, f"{EVENTS}?limit=1") as all_:
            await asyncio.to_thread(act, project, 1, "b")
            await asyncio.to_thread(act, project, 2)
            assert await some.kinds(2) == ["source.paused"] * 2
            assert (await all_.kinds(7))[0] == "source.resumed"
        for path, code in (
            (f"{EVENTS}?run=77", "no_run"),
            (f"{EVENTS}?source=c", "no_source"),
            (f"{EVENTS}?where=x", "usage"),
            ("/api/v1/runs/77/progress/stream", "no_run"),
        ):
            assert (await at.ask("GET", path)).json["code"] == code, path
        bad = await at.ask("GET", EVENTS, headers={"Last-Event-ID": "nonsense"})
        assert (bad.status, bad.json["code"]) == (422, "bad_cursor")

    visit(project, steps)


def test_stream_goes_on_behind_the_last_event_wherever_it_was_cut_off(project: Project) -> None:
    act(project, 30)
    events = [each.id for each in project.journal.list(kind="source", limit=1000).items][::-1]

    async def steps(at: Site) -> None:
        await at.log_in()
        heard: list[int] = []
        async with listening(at, f"{EVENTS}?kind=source&limit=1000") as first:
            found = [await first.next() for _ in range(60)]
            heard += [json.loads(each["data"])["event"] for each in found]
            assert heard == events
            await asyncio.to_thread(act, project, 20)
            last = [await first.next() for _ in range(7)]
        heard += [json.loads(each["data"])["event"] for each in last]
        last_id = last[-1]["id"]
        # Cut off after each number of events, with more happening meanwhile.
        for number in (1, 2, 5, 25):
            async with listening(
                at, f"{EVENTS}?kind=source", **{"Last-Event-ID": last_id}
            ) as again:
                await asyncio.to_thread(act, project)
                found = [await again.next() for _ in range(number)]
            heard += [json.loads(each["data"])["event"] for each in found]
            last_id = found[-1]["id"]
        known = [each.id for each in project.journal.list(kind="source", limit=1000).items][::-1]
        assert heard == known[: len(heard)]

    visit(project, steps)


def test_many_streams_cost_one_reader_that_ends_with_the_last_of_them(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        reader: Follower = at.app.state.follower
        async with AsyncExitStack() as stack:
            heard = [await stack.enter_async_context(listening(at)) for _ in range(20)]
            assert len(reader) == 20
            await asyncio.to_thread(act, project)
            for each in heard:
                assert await each.kinds(2) == ["source.paused", "source.resumed"]
        await until(lambda: len(reader) == 0 and not reader.is_looking)

    # Each look offers its events to every stream.
    read, found = JournalReader.look, list[int]()

    def looked(self: JournalReader, *args: Any, **about: Any) -> Look:
        look = read(self, *args, **about)
        found.extend(each.event.id for each in look.events)
        return look

    monkeypatch.setattr(JournalReader, "look", looked)
    visit(project, steps)
    assert len(found) == 2


def test_run_is_told_until_it_has_ended(project: Project) -> None:
    run = project.runs.start("a", actor="ann").run
    assert run is not None

    async def steps(at: Site) -> None:
        await at.log_in()
        path = f"/api/v1/runs/{run.id}/progress/stream"
        async with listening(at, path) as heard, listening(at, "/api/v1/progress/stream") as all_:
            assert json.loads((await heard.next())["data"])["state"] == "queued"
            first = json.loads((await all_.next())["data"])
            assert (first["overview"]["active_runs"], first["kinds"]) == (1, [])
            await asyncio.to_thread(lambda: list(project.runs.cancel(run.id, actor="ann")))
            last = await heard.next()
            while "event" not in last:
                last = await heard.next()
            assert (last["event"], json.loads(last["data"])["state"]) == ("end", "cancelled")
            assert await heard.next() == {}
            told = json.loads((await all_.next())["data"])
            while told["overview"]["active_runs"]:
                told = json.loads((await all_.next())["data"])
            assert told["overview"]["active_runs"] == 0

    visit(project, steps)


def test_kinds_are_told_without_reading_events_and_a_page_waits_longer_the_more_are_open(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[JournalReader]()
    monkeypatch.setattr(JournalReader, "_new_events", read.append)

    async def steps(at: Site) -> None:
        await at.log_in()
        path = "/api/v1/progress/stream"
        async with AsyncExitStack() as stack:
            heard = await stack.enter_async_context(listening(at, path))
            assert json.loads((await heard.next())["data"])["reload_s"] == streams.RELOAD_S
            others = [await stack.enter_async_context(listening(at, path)) for _ in range(11)]
            for each in others:
                await each.next()
            await asyncio.to_thread(act, project)
            kinds = set[str]()
            while len(kinds) < 2:
                told = json.loads((await heard.next())["data"])
                kinds |= set(told["kinds"])
            assert kinds == {"source.paused", "source.resumed"}
            assert told["reload_s"] == 12 / streams.RELOADS_PER_S

    visit(project, steps)
    assert read == []


def test_quiet_stream_says_that_it_is_alive_and_ends_in_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(streams, "LONGEST_S", 0.2)

    async def steps(at: Site) -> None:
        await at.log_in()
        async with listening(at) as heard:
            assert await heard.next() == {"retry": "3000", "": "alive"}
            while await heard.next():
                pass

    visit(project, steps)


def test_streams_are_bounded_and_do_not_hold_up_the_end_of_the_server(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "MOST_STREAMS", 2)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            async with site(project) as at:
                await at.log_in()
                for _ in range(2):
                    await stack.enter_async_context(listening(at))
                refused = await at.ask("GET", EVENTS)
                assert (refused.status, refused.json["code"]) == (429, "too_many_streams")
                began = time.monotonic()
            assert time.monotonic() - began < DRAIN_S

    asyncio.run(run())


def test_client_that_reads_nothing_is_cut_off(project: Project) -> None:
    async def run() -> None:
        async with site(project, Connections(stalled_s=0.2)) as at:
            await at.log_in()
            reader: Follower = at.app.state.follower
            [cookie] = at.browser.cookie_jar
            with closing(socket.create_connection(("127.0.0.1", at.port))) as peer:
                asked = f"GET {EVENTS} HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\n"
                peer.sendall(f"{asked}Cookie: {cookie.key}={cookie.value}\r\n\r\n".encode())
                await until(lambda: len(reader) == 1)
                # More than the system holds between two sockets; less than what makes a stream fall behind.
                await asyncio.to_thread(act, project, 200, "a", "r" * 50_000)
                await until(lambda: len(reader) == 0)

    asyncio.run(run())


def test_stream_that_is_too_far_behind_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "MOST_EVENTS", 3)

    async def run() -> None:
        waits = EventSubscription(EventFilter())
        waits.offer(Look([an_event(number) for number in range(3)]))
        assert not waits.is_over
        waits.offer(Look([an_event(3)]))
        assert (waits.is_over, waits.is_behind, waits.take()) == (True, True, [])

    asyncio.run(run())


def test_streams_outlive_a_database_that_is_gone_for_a_while(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "AGAIN_S", 0.01)
    is_gone = threading.Event()
    read, failed = JournalReader._new_events, threading.Event()

    def new_events(self: JournalReader) -> list[Placed]:
        if is_gone.is_set():
            failed.set()
            raise StoreError("gone")
        return read(self)

    monkeypatch.setattr(JournalReader, "_new_events", new_events)

    async def steps(at: Site) -> None:
        await at.log_in()
        async with listening(at) as heard:
            is_gone.set()
            await asyncio.to_thread(act, project)
            assert await asyncio.to_thread(failed.wait, 30)
            assert (await at.ask("GET", EVENTS)).status == 503
            is_gone.clear()
            assert await heard.kinds(2) == ["source.paused", "source.resumed"]

    visit(project, steps)


def an_event(number: int) -> Placed:
    about: dict[str, Any] = {
        "source": "a",
        "run_id": None,
        "job_id": None,
        "attempt": None,
        "worker": None,
    }
    event = EventView(
        id=number, at=1.0, kind="x", actor="ann", detail="", data={}, origin=None, **about
    )
    return Placed(str(number), event)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.01)
