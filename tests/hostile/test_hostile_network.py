"""The real network against hosts that mean harm: none of it leaves loopback."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import random
import resource
import ssl
import time
import traceback
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from penstock.clock import SystemClock
from penstock.gates.rates import Sent
from penstock.http import network as network_module
from penstock.http.encoding import Body
from penstock.http.failures import AddressRefused, FetchError, HostClosed
from penstock.http.fetch import Fetcher
from penstock.http.kept_headers import MAX_HEADERS_KEPT
from penstock.http.network import AiohttpNetwork, RawResponse, Request, Unpacking
from penstock.settings import FetchPolicy
from tests.hostile.loopback import Doors, Loopback, Names, Seen, Stream, answer, in_loop
from tests.hostile.offline import FakeClock, FakeDoor
from tests.unit.test_addresses import NO_URL, ODD_NUMBERS, REFUSED, SCHEMES

PEM = Path(__file__).with_name("shop_test.pem")
GUARDED = FetchPolicy(robots=False, timeout_s=5.0)
OPEN = replace(GUARDED, allow_private=True)
PUBLIC = "93.184.216.34"
SECRET = "hunter2-canary"

LITERALS = [f"http://[{each}]/" if ":" in each else f"http://{each}/" for each in REFUSED]
LOOPBACKS = """127.0.0.1 127.0.0.2 127.1 0 0.0.0.0 2130706433 0x7f000001 0x7f.0.0.1 017700000001 0177.1
    [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] localhost
    LOCALHOST localhost. 127.0.0.1. 127。0。0。1 ①②⑦.⓪.⓪.① ⓛⓞⓒⓐⓛⓗⓞⓢⓣ 127.0.0.1.nip.example
    shop.example@127.0.0.1 a:b@127.0.0.1 shop.example:80@127.0.0.1 internal metadata.google.internal
    %6c%6f%63%61%6c%68%6f%73%74 [::1%25lo] 127.0.0.1%23.example""".split()


def a_request(url: str, **changes: Any) -> Request:
    headers = {"Accept-Encoding": "gzip, deflate"}
    known: dict[str, Any] = {"timeout_s": 5.0, "max_bytes": 1_000_000, "allow_private": True}
    return Request("GET", url, headers, **(known | changes))


async def sent(url: str, **changes: object) -> RawResponse:
    network = AiohttpNetwork()
    try:
        return await network.send(a_request(url, **changes))
    finally:
        await network.close()


async def failed(url: str, **changes: object) -> FetchError:
    with pytest.raises(FetchError) as raised:
        await sent(url, **changes)
    return raised.value


@in_loop
async def test_no_spelling_of_an_internal_address_is_connected_to() -> None:
    """Every name resolves to loopback here, so only the checks stand between us and the listener."""
    doors, names = Doors(), Names([["127.0.0.1"]])
    async with Loopback({"/": answer(b"inside")}) as server:
        spelled = [f"http://{host}:{server.port}/" for host in LOOPBACKS]
        vectors = [*spelled, *LITERALS, *NO_URL, *ODD_NUMBERS, *SCHEMES]
        assert len(vectors) > 150
        network, blind = AiohttpNetwork(names), AiohttpNetwork(names, doors)
        for url in vectors:
            for each in (network, blind):
                with pytest.raises(AddressRefused):
                    await each.send(a_request(url, allow_private=False))
        await network.close()
        await blind.close()
        assert (server.connections, doors.wanted) == (0, [])


@in_loop
async def test_the_same_listener_is_reached_when_the_source_allows_it() -> None:
    names = Names([["127.0.0.1"]])
    async with Loopback({"/": answer(b"inside")}) as server:
        network = AiohttpNetwork(names)
        for host in ("127.0.0.1", "localhost", "internal", "127.0.0.1.nip.example"):
            response = await network.send(a_request(f"http://{host}:{server.port}/"))
            assert response.body == b"inside"
        await network.close()


@in_loop
async def test_a_connection_made_where_it_was_allowed_does_not_serve_others() -> None:
    async with Loopback({"/": answer(b"inside")}) as server:
        network = AiohttpNetwork(Names([["127.0.0.1"]]))
        url = f"http://internal:{server.port}/"
        assert (await network.send(a_request(url))).body == b"inside"
        with pytest.raises(AddressRefused):
            await network.send(a_request(url, allow_private=False))
        await network.close()
        assert len(server.seen) == 1


@in_loop
async def test_a_name_below_localhost_is_this_machine_whatever_the_resolver_says() -> None:
    names = Names([[PUBLIC]])
    async with Loopback({"/": answer(b"inside")}) as server:
        network = AiohttpNetwork(names)
        url = f"http://shop.localhost:{server.port}/"
        assert (await network.send(a_request(url))).body == b"inside"
        with pytest.raises(AddressRefused):
            await network.send(a_request(url, allow_private=False))
        await network.close()
        assert (names.lookups, len(server.seen)) == ([], 1)


@pytest.mark.parametrize(
    "addresses",
    [
        [PUBLIC, "127.0.0.1"],
        ["127.0.0.1", PUBLIC],
        [PUBLIC, "::1"],
        [PUBLIC, "8.8.8.8", "10.0.0.1"],
        [PUBLIC, "::ffff:127.0.0.1"],
        [PUBLIC, "not an address"],
    ],
)
@in_loop
async def test_one_private_address_among_public_ones_spoils_the_name(addresses: list[str]) -> None:
    doors = Doors()
    network = AiohttpNetwork(Names([addresses]), doors)
    with pytest.raises(AddressRefused) as refused:
        await network.send(a_request("http://mixed.test/", allow_private=False))
    assert "mixed.test" in str(refused.value)
    assert doors.wanted == []
    await network.close()


@in_loop
async def test_a_name_that_changes_its_mind_leads_nowhere_else() -> None:
    """Rebinding: public when checked, loopback if asked again. It is not asked again."""
    doors, names = Doors(), Names([[PUBLIC], ["127.0.0.1"]])
    async with Loopback({"/": answer(b"inside")}) as server:
        network = AiohttpNetwork(names, doors)
        for _ in range(3):
            with pytest.raises(FetchError) as raised:
                await network.send(
                    a_request(f"http://rebind.test:{server.port}/", allow_private=False)
                )
            assert not isinstance(raised.value, AddressRefused)
        await network.close()
        assert names.lookups == ["rebind.test"]
        assert doors.wanted == [PUBLIC] * 3
        assert server.connections == 0


@in_loop
async def test_a_name_that_is_resolved_anew_is_checked_anew() -> None:
    doors, names = Doors(), Names([[PUBLIC], ["127.0.0.1"]])
    network = AiohttpNetwork(names, doors)
    for port, kind in ((80, FetchError), (81, AddressRefused)):
        with pytest.raises(kind):
            await network.send(a_request(f"http://rebind.test:{port}/", allow_private=False))
    assert doors.wanted == [PUBLIC]
    await network.close()


@in_loop
async def test_the_socket_itself_is_checked_even_if_the_resolver_lies() -> None:
    class Lying(Names):
        """Says one address when checked, and another when connected to."""

        async def resolve(self, *args: object, **_: object) -> list[aiohttp.abc.ResolveResult]:
            found = await super().resolve("lying.test", 80)
            return [_TwoFaced(found[0])]  # type: ignore[list-item]

    doors = Doors()
    network = AiohttpNetwork(Lying([[PUBLIC]]), doors)
    with pytest.raises(FetchError):
        await network.send(a_request("http://lying.test/", allow_private=False))
    assert doors.wanted == []
    await network.close()


class _TwoFaced(dict[str, object]):
    """A resolver's answer whose address is public for the first who looks."""

    looks = 0

    def __getitem__(self, key: str) -> object:
        if key == "host":
            self.looks += 1
            return PUBLIC if self.looks == 1 else "127.0.0.1"
        return super().__getitem__(key)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@in_loop
async def test_a_redirect_inside_is_refused_hop_by_hop(status: int) -> None:
    """The public shop is played by a fake hop; what it points to would really be connected to."""
    async with Loopback({"/": answer(b"inside")}) as server:
        inner = AiohttpNetwork(Names([["127.0.0.1"]]))

        class Shop:
            async def send(self, request: Request) -> RawResponse:
                if request.url.startswith("https://shop.example/"):
                    return RawResponse(status, {"location": request.url.partition("?")[2]}, b"")
                return await inner.send(request)

            async def close(self) -> None:
                await inner.close()

        fetcher = Fetcher(Shop(), SystemClock(), random.Random(7), FakeDoor())
        for host in LOOPBACKS:
            for scheme in ("http://", "//"):
                url = f"https://shop.example/?{scheme}{host}:{server.port}/"
                with pytest.raises(AddressRefused):
                    await fetcher.fetch(url, GUARDED)
        await fetcher.close()
        assert server.connections == 0


@in_loop
async def test_host_header_and_keep_alive_survive_pinning() -> None:
    names = Names([["127.0.0.1"]])
    async with Loopback({"/": answer(b"ok", set_cookie="a=b")}) as server:
        network = AiohttpNetwork(names)
        for _ in range(5):
            await network.send(a_request(f"http://shop.test:{server.port}/"))
        await network.close()
        assert server.seen[0].headers["host"] == f"shop.test:{server.port}"
        assert (server.connections, names.lookups) == (1, ["shop.test"])
        assert not any("cookie" in seen.headers for seen in server.seen)


@in_loop
async def test_tls_is_checked_against_the_name_and_not_the_address() -> None:
    served, asked = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
    served.load_cert_chain(PEM)
    served.sni_callback = lambda _socket, name, _context: asked.append(name)
    async with Loopback({"/": answer(b"private")}, tls=served) as server:
        network = AiohttpNetwork(Names([["127.0.0.1"]]), tls=ssl.create_default_context(cafile=PEM))
        response = await network.send(a_request(f"https://shop.test:{server.port}/"))
        assert (response.body, asked) == (b"private", ["shop.test"])
        with pytest.raises(FetchError, match="certificate") as raised:
            await network.send(a_request(f"https://other.test:{server.port}/"))
        assert raised.value.is_permanent
        await network.close()


def member(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"\0" * 1_000_000
    return b"".join([*(packer.compress(block) for _ in range(size)), packer.flush()])


BIG = member(40)
BOMBS = {
    "gzip": ("gzip", BIG),
    "gzip of many members": ("gzip", BIG * 250),
    "x-gzip": ("x-gzip", BIG),
    "deflate": ("deflate", zlib.compress(b"\0" * 40_000_000, 9)),
    "deflate without header": ("deflate", zlib.compress(b"\0" * 40_000_000, 9)[2:-4]),
}


@pytest.mark.parametrize("name", sorted(BOMBS))
@in_loop
async def test_a_bomb_is_stopped_before_it_grows(name: str) -> None:
    coding, body = BOMBS[name]
    async with Loopback({"/": answer(body, content_encoding=coding)}) as server:
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        error = await failed(server.url + "/", max_bytes=1_000_000)
        assert (error.kind, error.is_permanent) == ("data", True)
        assert time.process_time() - began < 2.0
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@in_loop
async def test_a_stream_of_empty_members_is_not_followed_for_ever() -> None:
    body = gzip.compress(b"") * 40_000
    async with Loopback({"/": answer(body, content_encoding="gzip")}) as server:
        began = time.process_time()
        assert "members" in str(await failed(server.url + "/"))
        assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    "coding", ["br", "zstd", "compress", "gzip, gzip", "gzip, br", "aws-chunked"]
)
@in_loop
async def test_a_coding_nobody_asked_for_is_refused(coding: str) -> None:
    async with Loopback({"/": answer(b"\x00" * 99, content_encoding=coding)}) as server:
        error = await failed(server.url + "/")
        assert (error.kind, error.is_permanent) == ("data", True)
        assert server.seen[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("status", [302, 404, 500])
@in_loop
async def test_a_body_nobody_wants_is_never_decoded(status: int) -> None:
    answers: dict[str, bytes | Stream] = {
        "/": answer(BIG, status, content_encoding="gzip", location="/b"),
        "/br": answer(b"\xff" * 99, status, content_encoding="br", location="/b"),
    }
    async with Loopback(answers) as server:
        for path in answers:
            response = await sent(server.url + path, max_bytes=1000)
            assert (response.status, response.body) == (status, b"")


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("GZIP", gzip.compress(b"hello", mtime=0)),
        ("gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("gzip", gzip.compress(b"hello", mtime=0) + b"\0" * 99),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
        ("", b"hello"),
    ],
)
@in_loop
async def test_codings_that_were_asked_for_are_decoded(coding: str, body: bytes) -> None:
    async with Loopback({"/": answer(body, content_encoding=coding)}) as server:
        assert (await sent(server.url + "/", max_bytes=5)).body == b"hello"
        assert (await failed(server.url + "/", max_bytes=4)).kind == "data"


@pytest.mark.parametrize(
    "body", [gzip.compress(b"hello" * 99, mtime=0)[:-9], b"\x1f\x8b\x08\0garbage", b"x" * 99]
)
@in_loop
async def test_a_damaged_body_may_be_whole_the_next_time(body: bytes) -> None:
    async with Loopback({"/": answer(body, content_encoding="gzip")}) as server:
        error = await failed(server.url + "/")
        assert (error.kind, error.is_permanent) == ("data", False)


async def endless() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in itertools.count():
        yield b"10000\r\n" + b"a" * 65536 + b"\r\n"


async def endless_until_close() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    for _ in itertools.count():
        yield b"a" * 65536


async def dripping() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    for _ in itertools.count():
        yield b"a"
        await asyncio.sleep(0.01)


async def dripping_headers() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for n in itertools.count():
        yield b"X-%d: 1\r\n" % (n % 50)
        await asyncio.sleep(0.02)


async def silent() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


async def endless_header() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX: "
    for _ in itertools.count():
        yield b"a" * 65536


async def endless_headers() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for n in itertools.count():
        yield b"".join(b"X-%d: 1\r\n" % (n * 1000 + m) for m in range(1000))


async def endless_status() -> AsyncIterator[bytes]:
    for _ in itertools.count():
        yield b"HTTP/1.1 200 " + b"a" * 65536


async def endless_interim() -> AsyncIterator[bytes]:
    for _ in itertools.count():
        yield b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100


async def endless_trailers() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    for n in itertools.count():
        yield b"X-%d: 1\r\n" % n * 1000


@pytest.mark.parametrize("body", [endless, endless_until_close])
@in_loop
async def test_an_endless_body_ends_at_the_cap(body: Stream) -> None:
    async with Loopback({"/": body}) as server:
        error = await failed(server.url + "/", max_bytes=300_000)
        assert (error.kind, error.is_permanent) == ("data", True)


@in_loop
async def test_where_the_beginning_is_enough_it_is_all_that_is_read() -> None:
    async with Loopback({"/": endless}) as server:
        response = await sent(server.url + "/", max_bytes=100_000, is_prefix_enough=True)
        assert response.body == b"a" * 100_000


@pytest.mark.parametrize("body", [dripping, dripping_headers, silent, endless_interim])
@in_loop
async def test_a_slow_answer_ends_at_the_deadline(body: Stream) -> None:
    async with Loopback({"/": body}) as server:
        began = time.perf_counter()
        error = await failed(server.url + "/", timeout_s=0.2)
        assert time.perf_counter() - began < 30.0, "none of them ever ends"
        assert (error.kind, error.is_permanent) == ("transient", False)


@pytest.mark.parametrize(
    "body", [endless_header, endless_headers, endless_status, endless_trailers]
)
@in_loop
async def test_endless_headers_are_not_collected(body: Stream) -> None:
    async with Loopback({"/": body}) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert not (await failed(server.url + "/", timeout_s=3.0)).is_permanent
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@pytest.mark.parametrize(
    "reply",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"HTTP/9.9 9999 OK\r\n\r\n",
        b"\x00" * 100,
        b"\x16\x03\x01" * 100,
    ],
)
@in_loop
async def test_what_is_not_http_is_a_failure_and_not_a_crash(reply: bytes) -> None:
    async def once() -> AsyncIterator[bytes]:
        yield reply

    async with Loopback({"/": once}) as server:
        assert not (await failed(server.url + "/", timeout_s=1.0)).is_permanent


@pytest.mark.parametrize("cut", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"])
@in_loop
async def test_a_connection_that_breaks_is_worth_another_try(cut: bytes) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield cut

    async with Loopback({"/": broken}) as server:
        assert not (await failed(server.url + "/")).is_permanent


@in_loop
async def test_a_port_nobody_listens_on_is_worth_another_try() -> None:
    async with Loopback() as server:
        url = server.url
    error = await failed(url + "/")
    assert (error.kind, error.is_permanent) == ("transient", False)


@in_loop
async def test_few_of_too_many_headers_are_kept_and_all_are_counted() -> None:
    lines = "".join(f"X-{n}: {'a' * 16_000}\r\n" for n in range(110))
    head = (
        f'HTTP/1.1 200 OK\r\n{lines}ETag: "1"\r\nContent-Type: text/html\r\nContent-Length: 5\r\n'
    )
    async with Loopback({"/": head.encode() + b"\r\nhello"}) as server:
        response = await sent(server.url + "/")
        assert (response.headers["etag"], response.headers["content-type"]) == ('"1"', "text/html")
        kept = sum(len(name) + len(value) for name, value in response.headers.items())
        assert kept <= MAX_HEADERS_KEPT
        assert response.head_bytes > 110 * 16_000

        fetcher, spent = a_real_fetcher(), list[Sent]()
        await fetcher.fetch(server.url + "/", OPEN, count=spent.append)
        await fetcher.close()
        assert spent[0].bytes == response.head_bytes + 5


@in_loop
async def test_cookies_of_an_answer_are_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: object) -> None:
        raise AssertionError("a cookie was parsed")

    monkeypatch.setattr("aiohttp.abc.parse_set_cookie_headers", read)
    async with Loopback({"/": answer(b"ok", set_cookie="a=" + "b" * 9000)}) as server:
        assert (await sent(server.url + "/")).body == b"ok"


@in_loop
async def test_others_get_the_loop_while_a_bomb_is_unpacked() -> None:
    body = gzip.compress(b"\0" * 12_000_000, 9)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with Loopback({"/": answer(body, content_encoding="gzip")}) as server:
        await sent(server.url + "/", max_bytes=16_000_000)
        beside = asyncio.ensure_future(others())
        box = Body("gzip", 16_000_000)
        await asyncio.sleep(0)
        turns = 0
        await Unpacking(box).add(body)
        beside.cancel()
        assert len(box.finish()) == 12_000_000
        assert turns >= 10


@in_loop
async def test_headers_cannot_be_smuggled_into_a_request() -> None:
    async with Loopback({"/": answer()}) as server:
        network = AiohttpNetwork()
        for headers in ({"X": "1\r\nHost: evil"}, {"X\r\nY": "1"}):
            with pytest.raises(FetchError) as raised:
                await network.send(Request("GET", server.url + "/", headers, allow_private=True))
            assert raised.value.is_permanent
        await network.close()
        assert server.seen == []


@in_loop
async def test_no_more_requests_are_in_flight_to_a_host_than_allowed() -> None:
    arrived, gate = asyncio.Semaphore(0), asyncio.Event()

    async def held() -> AsyncIterator[bytes]:
        arrived.release()
        await gate.wait()
        yield answer(b"ok", connection="close")

    async with Loopback({f"/{n}": held for n in range(12)}) as server:
        fetcher, policy = a_real_fetcher(), replace(OPEN, connections=3)
        answers = asyncio.gather(*(fetcher.fetch(f"{server.url}/{n}", policy) for n in range(12)))
        for _ in range(3):
            await arrived.acquire()
        for _ in range(200):
            await asyncio.sleep(0)
        assert server.connections == 3
        gate.set()
        assert [each.status for each in await answers] == [200] * 12
        await fetcher.close()


@in_loop
async def test_no_credential_reaches_the_text_of_a_network_error() -> None:
    async def once() -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"

    headers = {"Authorization": SECRET}
    async with Loopback({f"/?token={SECRET}": once}) as server:
        for base in (server.url, "http://127.0.0.1:1", "http://nowhere.test", "http://0x7f.1"):
            network = AiohttpNetwork(Names([["127.0.0.1"]]))
            request = Request("GET", f"{base}/?token={SECRET}", headers, allow_private=True)
            with pytest.raises(FetchError) as raised:
                await network.send(request)
            assert SECRET not in "".join(traceback.format_exception(raised.value))
            await network.close()


@in_loop
async def test_a_whole_fetch_over_the_wire() -> None:
    async with Loopback() as server:
        server.answers = {
            "/robots.txt": answer(b"User-agent: *\nDisallow: /no"),
            "/a": answer(status=302, location="/b"),
            "/b": answer(gzip.compress("é".encode()), content_encoding="gzip", etag='"1"'),
            "/busy": answer(status=429, retry_after="9"),
        }
        fetcher = a_real_fetcher()
        policy = replace(OPEN, robots=True)
        response = await fetcher.fetch(server.url + "/a", policy)
        assert (response.url, response.text) == (server.url + "/b", "é")
        with pytest.raises(FetchError, match="robots"):
            await fetcher.fetch(server.url + "/no", policy)
        with pytest.raises(HostClosed):
            await fetcher.fetch(server.url + "/busy", policy)
        assert [seen.path for seen in server.seen] == ["/robots.txt", "/a", "/b", "/busy"]
        await fetcher.close()


def a_real_fetcher() -> Fetcher:
    return Fetcher(AiohttpNetwork(), FakeClock(), random.Random(7), FakeDoor())


class Dropping(Loopback):
    """Ends the connection in place of an answer, for the first `drops` requests of each path."""

    drops = 1_000_000

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.seen.append(Seen(head.split("\r\n")[0], {}))
        path = self.seen[-1].path
        if sum(seen.path == path for seen in self.seen) <= self.drops:
            if path.startswith("/reset"):
                writer.transport.abort()
            return False
        writer.write(answer(b"at last"))
        await writer.drain()
        return True


@pytest.mark.parametrize("path", ["/close", "/reset"])
@pytest.mark.parametrize(("method", "repeats"), [("GET", 1), ("HEAD", 1), ("POST", 0), ("PUT", 0)])
@in_loop
async def test_a_dropped_request_goes_out_as_often_as_it_is_counted(
    path: str, method: str, repeats: int
) -> None:
    async with Dropping() as server:
        door = FakeDoor()
        counted: list[Sent] = []
        fetcher = Fetcher(AiohttpNetwork(), FakeClock(), random.Random(7), door)
        for _ in range(3):
            with pytest.raises(FetchError):
                await fetcher.fetch(server.url + path, OPEN, method=method, count=counted.append)
        assert len(server.seen) == 3 * (1 + repeats) == len(door.sent) == len(counted)
        # Of a request and its repetition one speaks of the host.
        assert [told.is_well for _, told in door.sent].count(False) == 3
        await fetcher.close()


@in_loop
async def test_one_dropped_connection_costs_no_try() -> None:
    async with Dropping() as server:
        server.drops = 1
        door = FakeDoor()
        fetcher = Fetcher(AiohttpNetwork(), FakeClock(), random.Random(7), door)
        assert (await fetcher.fetch(server.url + "/page", OPEN)).text == "at last"
        assert len(server.seen) == len(door.sent) == 2
        await fetcher.close()


@in_loop
async def test_an_answer_with_a_megabyte_of_headers_is_paid_for_with_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []

    async def rest_after(held_s: float) -> None:
        rests.append(held_s)

    monkeypatch.setattr(network_module, "rest_after", rest_after)
    many = {f"x_{number}": "a" * 16_000 for number in range(100)}
    async with Loopback({"/": answer(b"hello", 200, **many), "/few": answer(b"hello")}) as server:
        await sent(server.url + "/few")
        assert rests == []
        await sent(server.url + "/")
    assert rests == [pytest.approx(0.0032, rel=0.05)]
