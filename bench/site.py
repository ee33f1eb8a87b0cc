"""The site that is crawled: a process of its own that answers from prebuilt responses.

A raw asyncio protocol, because the server must never be what is measured: it does nothing per
request but look up bytes and write them. Keep-alive and pipelining; robots.txt and sitemap.xml.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.product import page
from bench.records import second_load

# Items of one page of the API.
API_PAGE = 100


class Answering(asyncio.Protocol):
    """Answers each request on a connection from a table of whole responses by path."""

    def __init__(self, responses: dict[bytes, bytes]) -> None:
        self._responses = responses
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._unread = (self._unread + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1]
            self._transport.write(self._responses.get(path, MISSING))  # type: ignore[attr-defined]


def response(body: bytes, content_type: str, status: str = "200 OK") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: keep-alive\r\n\r\n"
    )
    return head.encode() + body


MISSING = response(b"not here", "text/plain", "404 Not Found")


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


def responses(pages: int, origin: str) -> dict[bytes, bytes]:
    """Everything the site has, by path."""
    locations = "".join(f"<url><loc>{origin}{path}</loc></url>" for path in paths(pages))
    sitemap = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
    )
    robots = f"User-agent: *\nDisallow: /private/\nSitemap: {origin}/sitemap.xml\n"
    table = {
        path.encode(): response(page(number, pages), "text/html; charset=utf-8")
        for number, path in enumerate(paths(pages))
    }
    table[b"/robots.txt"] = response(robots.encode(), "text/plain")
    table[b"/sitemap.xml"] = response(sitemap.encode(), "application/xml")
    return table


async def serve(pages: int, api_items: int) -> None:
    table: dict[bytes, bytes] = {}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(table), "127.0.0.1", 0, backlog=512)
    port = server.sockets[0].getsockname()[1]
    table.update(responses(pages, f"http://127.0.0.1:{port}"))
    table.update(items(api_items))
    print(port, flush=True)
    await server.serve_forever()


@contextmanager
def running(pages: int, api_items: int = 0) -> Iterator[str]:
    """Start the site, yield its origin, and stop it."""
    command = [sys.executable, "-m", "bench.site", str(pages), str(api_items)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
