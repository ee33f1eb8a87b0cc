"""The door: other protocols pass the same address rules, limits, budgets and breakers as HTTP."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import socketserver
import ssl
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from penstock.app import Project
from penstock.errors import PipelineError
from penstock.http.door import Door
from penstock.http.failures import AddressRefused, FetchError, FetchRefused, HostClosed
from penstock.http.fetch import Fetcher
from penstock.http.network import AiohttpNetwork
from penstock.http.request_gates import Caller
from penstock.settings import FetchPolicy
from penstock.store.jobs import JobFilter
from penstock.testing import Simulation, VirtualClock, journal
from tests.hostile.loopback import Doors, Names, in_loop
from tests.hostile.offline import FakeClock, FakeDoor, FakeNetwork, a_fetcher

SECRET = "hunter2-canary"
PUBLIC = FetchPolicy()
HERE = FetchPolicy(allow_private=True, timeout_s=5.0)
PEM = Path(__file__).parent / "localhost_test.pem"


def a_door(
    host: str = "mail.example",
    port: int = 993,
    policy: FetchPolicy = PUBLIC,
    *,
    tls: bool = True,
    network: AiohttpNetwork | None = None,
    limiter: FakeDoor | None = None,
) -> Door:
    clock = FakeClock()
    limiter = limiter or FakeDoor(clock)
    fetcher = Fetcher(network or AiohttpNetwork(), clock, random.Random(7), limiter)
    return fetcher.door(host, port, policy, Caller("mail"), tls=tls)


class _Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        with server.changed:
            server.connections += 1
            server.changed.notify_all()
        while line := self.rfile.readline():
            with server.changed:
                server.lines.append(line)
                server.changed.notify_all()
            self.wfile.write(b"echo " + line)


class LineServer(socketserver.ThreadingTCPServer):
    """Answers each line, and counts connections and lines."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Echo)
        self.changed = threading.Condition()
        self.connections = 0
        self.lines: list[bytes] = []
        self.port: int = self.server_address[1]

    def has_met(self, requests: int) -> bool:
        """Whether so many came, connections and lines: its threads may count later than a client hears."""
        with self.changed:
            return self.changed.wait_for(
                lambda: self.connections + len(self.lines) >= requests, timeout=10
            )


@pytest.fixture
def server() -> Iterator[LineServer]:
    with LineServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def exchange(opened: Any, line: bytes = b"hello\n") -> bytes:
    opened.sendall(line)
    found: bytes = opened.recv(100)
    return found


@in_loop
async def test_a_private_address_is_refused_and_no_socket_is_opened() -> None:
    for answers in (["10.0.0.7"], ["93.184.215.14", "127.0.0.1"], ["169.254.169.254"], ["::1"]):
        sockets = Doors()
        network = AiohttpNetwork(Names([answers]), sockets)
        with pytest.raises(AddressRefused, match="allow_private"):
            await a_door(network=network).connect()
        assert sockets.wanted == []
    with pytest.raises(AddressRefused):
        await a_door("127.0.0.1").connect()


@in_loop
async def test_metadata_stays_closed_where_private_networks_are_open() -> None:
    sockets = Doors()
    network = AiohttpNetwork(Names([["169.254.169.254"]]), sockets)
    with pytest.raises(AddressRefused):
        await a_door(policy=HERE, network=network).connect()
    with pytest.raises(AddressRefused):
        await a_door("100.100.100.200", policy=HERE, network=network).connect()
    assert sockets.wanted == []


def test_allow_private_opens_it_and_the_name_is_resolved_once(server: LineServer) -> None:
    names = Names([["127.0.0.1"]])

    async def talk() -> bytes:
        network = AiohttpNetwork(names)
        door = a_door("mail.example", server.port, HERE, tls=False, network=network)
        with closing(await door.connect()) as opened:
            assert opened.gettimeout() == 5.0
            return await asyncio.to_thread(exchange, opened)

    assert asyncio.run(talk()) == b"echo hello\n"
    assert names.lookups == ["mail.example"]


@in_loop
async def test_every_address_of_the_name_is_tried() -> None:
    sockets = Doors()
    network = AiohttpNetwork(Names([["93.184.215.14", "93.184.215.15"]]), sockets)
    with pytest.raises(FetchError, match=r"mail\.example:993"):
        await a_door(network=network).connect()
    assert sockets.wanted == ["93.184.215.14", "93.184.215.15"]


@pytest.mark.parametrize("name", ["localhost", "mail.example"])
def test_the_certificate_is_checked_for_the_host(name: str) -> None:
    ours, theirs = ssl.create_default_context(cafile=PEM), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(PEM)

    async def talk() -> bytes:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"echo " + await reader.readline())
            writer.close()

        listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=theirs)
        port = listening.sockets[0].getsockname()[1]
        network = AiohttpNetwork(Names([["127.0.0.1"]]), tls=ours)
        async with listening:
            opened = await a_door(name, port, HERE, network=network).connect()
            with closing(opened):
                return await asyncio.to_thread(exchange, opened)

    if name == "localhost":
        assert asyncio.run(talk()) == b"echo hello\n"
    else:
        with pytest.raises(FetchError, match="certificate") as raised:
            asyncio.run(talk())
        assert raised.value.is_permanent


def test_hosts_have_the_names_that_they_have_in_urls() -> None:
    assert a_door("IMAP.Example.com", 993).host_key == "imap.example.com:993"
    assert a_door("stream.example", 443).host_key == "stream.example"
    assert a_door("2001:4860:4860::8888", 143).host_key == "[2001:4860:4860::8888]:143"
    for host in ("", "a b", "user@host", "host/path", "0x7f.1", "host:80", "a\r\nb"):
        with pytest.raises(AddressRefused):
            a_door(host)
    for port in (0, -1, 65536):
        with pytest.raises(AddressRefused):
            a_door(port=port)


def test_a_host_beside_fetch_hosts_is_refused() -> None:
    with pytest.raises(AddressRefused, match=r"fetch\.hosts"):
        a_door(policy=FetchPolicy(hosts=("other.example",)))
    a_door(policy=FetchPolicy(hosts=("mail.example:993",)))


@in_loop
async def test_a_connection_does_not_go_around_a_proxy() -> None:
    with pytest.raises(FetchRefused, match="proxy"):
        await a_door(policy=FetchPolicy(proxy=f"http://me:{SECRET}@proxy.example:3128")).connect()


def test_a_network_of_scripted_answers_opens_no_connections() -> None:
    with pytest.raises(PipelineError, match="opens no connections"):
        a_fetcher(FakeNetwork()).door("mail.example", 993, HERE)


@in_loop
async def test_what_a_request_brought_is_reported_also_when_it_failed() -> None:
    limiter = FakeDoor()
    door = a_door(limiter=limiter)

    async def answers() -> str:
        return "well"

    async def breaks() -> str:
        raise ConnectionResetError(104, "reset", SECRET)

    async def refuses() -> str:
        raise LookupError("no such mailbox")

    assert await door.ask(answers, received=lambda: 7) == "well"
    with pytest.raises(FetchError, match=r"mail\.example:993") as raised:
        await door.ask(breaks, received=lambda: 3)
    with pytest.raises(LookupError):
        await door.ask(refuses)
    told = [(sent.is_well, sent.bytes) for _, sent in limiter.sent]
    assert told == [(True, 7), (False, 3), (None, 0)]
    assert {want.host for want, _ in limiter.sent} == {"mail.example:993"}
    assert SECRET not in "".join(traceback.format_exception(raised.value))


@in_loop
async def test_a_paused_host_is_closed_for_all_until_then() -> None:
    limiter = FakeDoor()
    clock = limiter.clock
    fetcher = Fetcher(AiohttpNetwork(), clock, random.Random(7), limiter)
    door = fetcher.door("mail.example", 993, HERE)
    assert door.pause(90.0).delay_s == 90.0
    assert limiter.closed == {"mail.example:993": 90.0}
    with pytest.raises(HostClosed):
        await fetcher.door("mail.example", 993, HERE).connect()
    with pytest.raises(HostClosed):
        await fetcher.fetch("https://mail.example:993/", FetchPolicy(robots=False))


@dataclass
class Exchange:
    """Opens websockets at /stream, and answers other paths as it is told."""

    statuses: dict[str, int] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    async def stream(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        status = self.statuses.get(request.path)
        if status is not None:
            headers = {"Location": "/stream", "Retry-After": "120"}
            return web.Response(status=status, headers=headers)
        opened = web.WebSocketResponse()
        await opened.prepare(request)
        async for message in opened:
            if message.data == "bye":
                break
            await opened.send_str(message.data * 2)
        await opened.close()
        return opened

    async def start(self) -> web.AppRunner:
        application = web.Application()
        application.router.add_get("/{path}", self.stream)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner


@in_loop
async def test_a_websocket_takes_messages_of_a_bounded_size() -> None:
    exchange, limiter = Exchange(), FakeDoor()
    runner, network = await exchange.start(), AiohttpNetwork()
    door = a_door("127.0.0.1", exchange.port, HERE, tls=False, network=network, limiter=limiter)
    url = f"ws://127.0.0.1:{exchange.port}/stream"
    opened = await door.websocket(url, {"Authorization": SECRET}, max_message_bytes=1000)
    await opened.send("ab")
    assert (await opened.receive(5.0), opened.received) == ("abab", 4)
    with pytest.raises(TimeoutError):
        await opened.receive(0.01)
    await opened.send("bye")
    assert await opened.receive(5.0) is None
    await opened.close()
    async with await door.websocket(url, max_message_bytes=1000) as opened:
        await opened.send("x" * 501)
        with pytest.raises(FetchError, match="larger than 1000 bytes"):
            await opened.receive(5.0)
    assert exchange.headers[0]["Authorization"] == SECRET
    assert exchange.headers[0]["User-Agent"].startswith("penstock/")
    assert [sent.is_well for _, sent in limiter.sent] == [True, True]
    await network.close()
    await runner.cleanup()


@in_loop
async def test_a_websocket_that_is_not_opened_fails_as_a_page_does() -> None:
    exchange = Exchange({"/moved": 302, "/auth": 401, "/busy": 429, "/down": 500})
    runner, network, limiter = await exchange.start(), AiohttpNetwork(), FakeDoor()
    door = a_door("127.0.0.1", exchange.port, HERE, tls=False, network=network, limiter=limiter)
    found = {}
    for path in ("moved", "auth", "down", "busy"):
        with pytest.raises(FetchError) as raised:
            await door.websocket(f"ws://127.0.0.1:{exchange.port}/{path}?token={SECRET}")
        found[path] = (raised.value.status, raised.value.kind)
        assert SECRET not in "".join(traceback.format_exception(raised.value))
    assert found == {
        "moved": (302, "permanent"),
        "auth": (401, "auth"),
        "down": (500, "transient"),
        "busy": (429, "transient"),
    }
    assert len(exchange.headers) == 4, "no redirect is followed"
    assert limiter.closed == {door.host_key: 120.0}
    assert [sent.is_well for _, sent in limiter.sent] == [True, True, False, None]
    await network.close()
    await runner.cleanup()


@in_loop
async def test_a_websocket_leads_to_the_host_of_its_door_and_to_no_private_address() -> None:
    for url in ("wss://other.example/", "ws://mail.example:993/", "https://mail.example:993/"):
        with pytest.raises(AddressRefused):
            await a_door().websocket(url)
    sockets = Doors()
    network = AiohttpNetwork(Names([["127.0.0.1"]]), sockets)
    with pytest.raises(AddressRefused, match="allow_private"):
        await a_door(network=network).websocket("wss://mail.example:993/")
    assert sockets.wanted == []
    await network.close()


PIPELINE = """
from contextlib import closing

from penstock import Pipeline
from penstock.pipeline.context import Captured

lines = Pipeline("lines")


@lines.step(unit="run")
def discover(ctx):
    for number in range(ctx.params["count"]):
        yield {"number": number}


@lines.step(after="discover", unit="page", key="number")
async def read(item, ctx):
    text = f"line {item['number']}\\n".encode()

    async def brought():
        door = ctx.door("127.0.0.1", ctx.params["port"], tls=False)
        with closing(await door.connect()) as opened:

            def talk():
                opened.sendall(text)
                return opened.recv(100)

            return Captured(await door.ask(lambda: ctx.in_thread(talk), received=lambda: 11))

    if ctx.params.get("bare"):
        ctx.door("127.0.0.1", ctx.params["port"])
    response = await ctx.capture(f"lines:{item['number']}", brought, counted=False)
    ctx.save("line", key=item["number"], data={"text": response.text})
"""


@contextmanager
def a_project(folder: Path, port: int, **more: Any) -> Iterator[tuple[Project, Simulation]]:
    """A source whose steps send lines over a door, in a worker on virtual time."""
    (folder / "door_pipeline.py").write_text(PIPELINE)
    params = {"port": port, "count": 5, **more.pop("params", {})}
    source = {
        "pipeline": "door_pipeline:lines",
        "params": params,
        "fetch": {"allow_private": True, "timeout": "5s"},
        **more,
    }
    (folder / "penstock.yaml").write_text(json.dumps({"project": "p", "sources": {"s": source}}))
    clock = VirtualClock()
    project = Project.load(folder)
    with (
        closing(project),
        Simulation(project, AiohttpNetwork(), seed=1, clock=clock) as simulation,
    ):
        yield project, simulation


def begun(project: Project) -> int:
    run = project.runs.start("s").run
    assert run is not None
    return run.id


def states(project: Project) -> dict[str, int]:
    jobs = project.connection.jobs.find(JobFilter(stage="read", limit=100))
    return dict(Counter(job.state.value for job in jobs))


def test_requests_of_steps_are_counted_and_their_rate_is_kept(
    tmp_path: Path, server: LineServer
) -> None:
    with a_project(tmp_path, server.port, limits={"rate": "2/s"}) as (project, simulation):
        run_id = begun(project)
        simulation.run()
        run = project.require_run(run_id)
        assert server.has_met(10)
        assert (run.state, server.connections, len(server.lines)) == ("completed", 5, 5)
        assert (run.requests, run.bytes) == (10, 55)
        # Ten requests at two per second: the last goes out 4.5 s after the first.
        assert project.clock.monotonic() >= 4.5


def test_a_budget_of_requests_ends_them(tmp_path: Path, server: LineServer) -> None:
    with a_project(tmp_path, server.port, budget={"requests": "6/d"}) as (project, simulation):
        project.runs.start("s")
        simulation.run()
        assert server.has_met(6)
        assert server.connections + len(server.lines) == 6
        assert states(project)["quarantined"] >= 2


def test_the_breaker_opens_for_a_host_that_refuses_connections(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        with a_project(tmp_path, port, params={"count": 30}) as (project, simulation):
            project.runs.start("s")
            simulation.run(for_s=60.0)
            opened = [each for each in journal(project) if each.kind == "breaker.opened"]
            assert opened
            keys = {row.key for row in project.connection.breakers.all()}
            assert f"host:127.0.0.1:{port}" in keys


def test_a_replay_is_served_from_the_snapshots_and_opens_no_connection(
    tmp_path: Path, server: LineServer
) -> None:
    with a_project(tmp_path, server.port) as (project, simulation):
        run_id = begun(project)
        simulation.run()
        assert states(project) == {"succeeded": 5}
        replay_id = project.replay(run_id)
        simulation.run()
        assert project.require_run(replay_id).state == "completed"
        assert server.connections == 5


def test_a_replay_refuses_a_step_that_wants_a_connection(
    tmp_path: Path, server: LineServer
) -> None:
    with a_project(tmp_path, server.port, params={"bare": True}) as (project, simulation):
        run_id = begun(project)
        simulation.run()
        replay_id = project.replay(run_id)
        simulation.run()
        jobs = project.connection.jobs.find(JobFilter(run_id=replay_id, stage="read", limit=10))
        assert {job.kind for job in jobs} == {"permanent"}
        assert all("a replay opens no connections" in (job.error or "") for job in jobs)
