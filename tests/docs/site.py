"""The web that the recipes of the cookbook read: a server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, str, str]
PAGES = 6
PRODUCT = '<h1>Product {}</h1><meta itemprop="price" content="{}.50">'
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>{}</channel></rss>"""
ITEM = "<item><link>{0}/a/{1}</link><title>Article {1}</title></item>"
LOC = "<url><loc>{}/p/{}</loc><lastmod>2026-01-01</lastmod></url>"
SITEMAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
TAG = '"1"'


class Web(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[str] = []
        self.statuses: dict[str, list[int]] = {}
        self.sessions: list[int] = []  # how often each was used
        self.hooked: list[tuple[dict[str, str], bytes]] = []


class Handler(BaseHTTPRequestHandler):
    server: Web
    protocol_version = "HTTP/1.1"
    json: ClassVar[str] = "application/json"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.answer(*self.page(urlsplit(self.path).path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/penstock":
            self.server.hooked.append((dict(self.headers), body))
            return self.answer(200, "text/plain", "")
        if parse_qs(body.decode()) != {"user": ["reader"], "password": ["correct-horse"]}:
            return self.answer(403, "text/plain", "")
        self.server.sessions.append(0)
        return self.answer(200, "text/plain", "", f"session={len(self.server.sessions)}")

    def page(self, path: str) -> Answer:
        origin, query = self.server.origin, parse_qs(urlsplit(self.path).query)
        first, _, rest = path.strip("/").partition("/")
        if path == "/sitemap.xml":
            listed = "".join(LOC.format(origin, n) for n in range(PAGES))
            return 200, "application/xml", SITEMAP.format(listed)
        if path == "/feed.xml":
            listed = "".join(ITEM.format(origin, n) for n in range(PAGES))
            return 200, "application/rss+xml", FEED.format(listed)
        if first == "p":
            return 200, "text/html", PRODUCT.format(rest, rest)
        if first == "a" and self.headers["If-None-Match"] == TAG:
            return 304, "text/html", ""
        if first == "a":
            return 200, "text/html", f"<article>Text {rest}</article>"
        if first == "orders":
            after = int(query.get("after", ["0"])[0])
            some = [{"id": n} for n in range(1, 251) if n > after][:100]
            return 200, self.json, json.dumps({"orders": some})
        if first == "rates":
            return 200, self.json, json.dumps([{"day": query["day"][0], "rate": 1.1}])
        if first.startswith("invoices"):
            return self.invoices(rest)
        return 404, "text/plain", ""

    def invoices(self, number: str) -> Answer:
        """For whoever has a session; the first expires after two requests."""
        used = self.server.sessions
        session = int((self.headers["Cookie"] or "session=0").removeprefix("session="))
        if not 1 <= session <= len(used) or (session == 1 and used[0] >= 2):
            return 401, "text/plain", ""
        used[session - 1] += 1
        return 200, self.json, json.dumps({"number": number} if number else [1, 2, 3])

    def answer(self, status: int, kind: str, text: str, cookie: str = "") -> None:
        body = text.encode()
        self.server.statuses.setdefault(self.path, []).append(status)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", TAG)
        if cookie:
            self.send_header("Set-Cookie", f"{cookie}; Path=/; HttpOnly")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web() -> Iterator[Web]:
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
