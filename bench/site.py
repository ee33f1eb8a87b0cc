"""The site that is crawled: a process of its own that answers from prebuilt responses.

A raw asyncio protocol, because the server must never be what is measured: it does nothing per
request but look up bytes and write them. Keep-alive and pipelining; robots.txt and sitemaps.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench.product import page
from bench.records import second_load

# Items of one page of the API.
API_PAGE = 100
# Its key is public: it is good for loopback addresses and nothing else.
CERTIFICATE = Path(__file__).with_name("site.pem")
# The first day of the series, and how many prices a day has.
FIRST_DAY, DAY_PRICES = date(2015, 1, 1), 10
# What sitemap-part.xml lists, and when all pages changed last by sitemap-dated.xml.
PART, CHANGED = 5_000, "2020-01-01"


@dataclass(frozen=True)
class Shape:
    """What the site has. Its pages are divided among `hosts`, each at an address of its own."""

    pages: int = 0
    hosts: int = 1
    api_items: int = 0
    days: int = 0
    delay_s: float = 0.0
    is_tls: bool = False
    has_tags: bool = False


@dataclass
class Traffic:
    """How many requests there were, and when the first came since it was last asked to forget."""

    count: int = 0
    first_at: float | None = None

    def note(self) -> None:
        self.count += 1
        if self.first_at is None:
            self.first_at = time.time()

    def told(self, path: bytes) -> bytes:
        if path == b"/-/forget":
            self.first_at = None
        body = {"count": self.count, "first_at": self.first_at}
        return response(json.dumps(body).encode(), "application/json")


class Answering(asyncio.Protocol):
    """Answers each request on a connection from a table of whole responses by path."""

    def __init__(self, responses: dict[bytes, bytes], shape: Shape, traffic: Traffic) -> None:
        self._responses = responses
        self._shape = shape
        self._traffic = traffic
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._unread = (self._unread + data).split(b"\r\n\r\n")
        for request in requests:
            answer = self._answer(request)
            if self._shape.delay_s:
                loop = asyncio.get_running_loop()
                loop.call_later(self._shape.delay_s, self._transport.write, answer)  # type: ignore[attr-defined]
            else:
                self._transport.write(answer)  # type: ignore[attr-defined]

    def _answer(self, request: bytes) -> bytes:
        path = request.split(b" ", 2)[1]
        if path.startswith(b"/-/"):
            return self._traffic.told(path)
        self._traffic.note()
        if self._shape.has_tags and b"\r\nif-none-match:" in request.lower():
            return NOT_MODIFIED
        return self._responses.get(path, MISSING)


def response(body: bytes, content_type: str, status: str = "200 OK", more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{more}"
        f"Content-Length: {len(body)}\r\nConnection: keep-alive\r\n\r\n"
    )
    return head.encode() + body


MISSING = response(b"not here", "text/plain", "404 Not Found")
# Nothing ever changes here, so any tag that a client sends is the right one.
TAG = 'ETag: "first"\r\n'
NOT_MODIFIED = f"HTTP/1.1 304 Not Modified\r\n{TAG}Connection: keep-alive\r\n\r\n".encode()


def paths(pages: int) -> list[str]:
    return [f"/p/{number}.html" for number in range(pages)]


def items(number: int) -> dict[bytes, bytes]:
    """An API with so many items, in numbered pages."""
    found = list(second_load(number))
    last = -(-number // API_PAGE)
    table = {}
    for page_number in range(1, last + 1):
        part = found[(page_number - 1) * API_PAGE : page_number * API_PAGE]
        body = {"items": part, "page": page_number, "pages": last, "total": number}
        made = response(json.dumps(body).encode(), "application/json")
        table[f"/items?page={page_number}".encode()] = made
    return {**table, b"/items": table[b"/items?page=1"]} if table else {}


def days(number: int) -> dict[bytes, bytes]:
    """A series with so many days, each with a few prices."""
    table = {}
    for at in range(number):
        day = (FIRST_DAY + timedelta(days=at)).isoformat()
        body = [{"day": day, "symbol": f"S{n}", "price": at + n / 10} for n in range(DAY_PRICES)]
        made = response(json.dumps(body).encode(), "application/json")
        table[f"/prices?day={day}".encode()] = made
    return table


def product_pages(shape: Shape) -> dict[bytes, bytes]:
    more = TAG if shape.has_tags else ""
    return {
        path.encode(): response(page(number, shape.pages), "text/html; charset=utf-8", more=more)
        for number, path in enumerate(paths(shape.pages))
    }


def entrance(origin: str, listed: list[str]) -> dict[bytes, bytes]:
    """What a host has beside its pages: robots.txt and sitemaps, with and without the time of change."""
    robots = f"User-agent: *\nDisallow: /private/\nSitemap: {origin}/sitemap.xml\n"
    dated = f"<lastmod>{CHANGED}</lastmod>"
    table = {b"/robots.txt": response(robots.encode(), "text/plain")}
    for name, some, more in (
        (b"/sitemap.xml", listed, ""),
        (b"/sitemap-dated.xml", listed, dated),
        (b"/sitemap-part.xml", listed[:PART], ""),
    ):
        table[name] = response(_sitemap(origin, some, more), "application/xml")
    return table


def _sitemap(origin: str, listed: list[str], more: str) -> bytes:
    locations = "".join(f"<url><loc>{origin}{path}</loc>{more}</url>" for path in listed)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
    ).encode()


async def serve(shape: Shape) -> None:
    loop, traffic = asyncio.get_running_loop(), Traffic()
    shared = {**product_pages(shape), **items(shape.api_items), **days(shape.days)}
    secured = None
    if shape.is_tls:
        secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secured.load_cert_chain(CERTIFICATE)
    origins, servers = [], []
    for number, listed in enumerate(divided(paths(shape.pages), shape.hosts)):
        address, table = f"127.0.0.{number + 1}", dict(shared)
        made = await loop.create_server(
            partial(Answering, table, shape, traffic),
            address,
            0,
            backlog=512,
            ssl=secured,
        )
        port = made.sockets[0].getsockname()[1]
        origins.append(f"{'https' if secured else 'http'}://{address}:{port}")
        table.update(entrance(origins[-1], listed))
        servers.append(made)
    print(json.dumps(origins), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


def divided(everything: list[str], parts: int) -> list[list[str]]:
    """In so many parts of one size, one after another."""
    size = len(everything) // parts
    return [everything[part * size : (part + 1) * size] for part in range(parts)]


@contextmanager
def running(shape: Shape) -> Iterator[dict[str, Any]]:
    """Start the site, yield where it is and whom to trust, and stop it."""
    command = [sys.executable, "-m", "bench.site", json.dumps(asdict(shape))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            origins = json.loads(process.stdout.readline())
            certificate = {"certificate": str(CERTIFICATE)} if shape.is_tls else {}
            yield {"origin": origins[0], "origins": origins, **certificate}
        finally:
            process.terminate()


def requests_at(origin: str) -> int:
    """How many requests the site has had, all hosts together."""
    return int(_traffic(origin, "seen")["count"])


def forget_first(origin: str) -> None:
    _traffic(origin, "forget")


def first_request_at(origin: str) -> float:
    """When the first request came since it was last asked to forget."""
    at = _traffic(origin, "seen")["first_at"]
    if at is None:
        raise ValueError("the site has had no request")
    return float(at)


def _traffic(origin: str, what: str) -> dict[str, Any]:
    with urlopen(f"{origin}/-/{what}") as answer:  # noqa: S310 - the site above
        found: dict[str, Any] = json.loads(answer.read())
        return found


if __name__ == "__main__":
    asyncio.run(serve(Shape(**json.loads(sys.argv[1]))))
