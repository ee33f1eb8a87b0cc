"""An API with every kind of paging, credentials and fault: for the scripted network, or on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import web

from penstock.testing import RawResponse, Request, answer

SITE = "https://api.example"
SECRET = "s3cr3t-of-the-place"
Query = dict[str, str]


def reply(found: Any, status: int = 200, **headers: str) -> RawResponse:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer(json.dumps(found), status, {"Content-Type": "application/json", **told})


class Server:
    """Answers by the path; `records` may change at any time."""

    def __init__(self, records: int = 7, origin: str = SITE) -> None:
        self.origin = origin
        self.records = [record(number) for number in range(1, records + 1)]
        self.seen: list[Request] = []
        self.size = 2
        self.tokens: list[str] = []
        self.bad_tokens: set[str] = set()
        # Answers that come instead, by path.
        self.faults: dict[str, list[RawResponse]] = {}
        self.on_request: Callable[[Request], None] = lambda _: None

    def respond(self, request: Request) -> RawResponse:
        self.seen.append(request)
        self.on_request(request)
        url = urlsplit(request.url)
        if self.faults.get(url.path):
            return self.faults[url.path].pop(0)
        query = {name: each[0] for name, each in parse_qs(url.query, True).items()}
        sent = request.body or b""
        body = json.loads(sent) if sent.startswith(b"{") else {}
        name = f"do_{url.path.strip('/').replace('-', '_')}"
        found = getattr(self, name, None)
        if found is None:
            return answer("", status=404)
        made: RawResponse = found(query, body, request)
        return made

    def asked(self, path: str) -> list[Query]:
        """The queries that a path was asked with."""
        found = [urlsplit(each.url) for each in self.seen]
        return [{n: v[0] for n, v in parse_qs(u.query).items()} for u in found if u.path == path]

    def part(self, start: int, size: int | None = None) -> list[dict[str, Any]]:
        return self.records[start : start + (size or self.size)]

    def do_bare(self, query: Query, body: Any, request: Request) -> RawResponse:
        return reply(self.part((int(query.get("page", 1)) - 1) * self.size))

    def do_missing(self, query: Query, body: Any, request: Request) -> RawResponse:
        found = self.part((int(query.get("page", 1)) - 1) * self.size)
        return reply(found) if found else reply({"detail": "Invalid page."}, 404)

    def do_pages(self, query: Query, body: Any, request: Request) -> RawResponse:
        page = int(query.get("page", 1))
        last = -(-len(self.records) // self.size)
        meta = {"current_page": page, "last_page": last, "per_page": self.size}
        return reply({"data": self.part((page - 1) * self.size), "meta": meta})

    def do_capped(self, query: Query, body: Any, request: Request) -> RawResponse:
        """However many are asked for, it gives few."""
        start = int(query.get("offset", 0))
        found = {"results": self.part(start), "total": len(self.records)}
        return reply(found if "total" in query else found["results"])

    def do_clamped(self, query: Query, body: Any, request: Request) -> RawResponse:
        last = (len(self.records) - 1) // self.size
        return reply(self.part(min(int(query.get("page", 1)) - 1, last) * self.size))

    def do_ignoring(self, query: Query, body: Any, request: Request) -> RawResponse:
        return reply(self.part(0))

    def do_cursors(self, query: Query, body: Any, request: Request) -> RawResponse:
        start = int(query.get("cursor", "c0").removeprefix("c"))
        more = start + self.size < len(self.records)
        cursor = f"c{start + self.size}" if more else ""
        return reply({"data": self.part(start), "meta": {"next_cursor": cursor}})

    def do_circle(self, query: Query, body: Any, request: Request) -> RawResponse:
        after = {"": "a", "a": "b", "b": "c", "c": "a"}[query.get("cursor", "")]
        number = len(self.seen)
        made = [record(100 * number), record(100 * number + 1)]
        return reply({"data": made, "next_cursor": after})

    def do_last(self, query: Query, body: Any, request: Request) -> RawResponse:
        ids = [each["id"] for each in self.records]
        start = ids.index(int(query["starting_after"])) + 1 if "starting_after" in query else 0
        more = start + self.size < len(ids)
        return reply({"object": "list", "data": self.part(start), "has_more": more})

    def do_links(self, query: Query, body: Any, request: Request) -> RawResponse:
        start = int(query.get("from", 0))
        links = [f'<{self.origin}/links?from=0>; rel="first"']
        if start + self.size < len(self.records):
            links.append(f'</links?from={start + self.size}>; title="a, b"; rel="next last"')
        return reply(self.part(start), Link=", ".join(links))

    def do_next(self, query: Query, body: Any, request: Request) -> RawResponse:
        start = int(query.get("from", 0))
        more = start + self.size < len(self.records)
        found = {"href": f"?from={start + self.size}"} if more else None
        return reply({"_links": {"next": found}, "items": self.part(start)})

    def do_elsewhere(self, query: Query, body: Any, request: Request) -> RawResponse:
        return reply({"items": self.part(0), "next": "https://other.example/next"})

    def do_search(self, query: Query, body: Any, request: Request) -> RawResponse:
        start = int(body.get("page", {}).get("after", 0))
        more = start + self.size < len(self.records)
        after = {"next_cursor": start + self.size} if more and body["text"] == "x" else {}
        return reply({"hits": self.part(start), **after})

    def do_graphql(self, query: Query, body: Any, request: Request) -> RawResponse:
        variables = body["variables"]
        start, size = int(variables.get("after") or 0), variables["first"]
        more = start + size < len(self.records)
        info = {"hasNextPage": more, "endCursor": str(start + size)}
        edges = [{"node": each} for each in self.part(start, size)]
        orders = {"edges": edges, "pageInfo": info}
        return reply({"data": {"shop": {"name": variables["shop"], "orders": orders}}})

    def do_changes(self, query: Query, body: Any, request: Request) -> RawResponse:
        """In the order of the last change, since some time; the ETag is that of every question."""
        if "If-None-Match" in request.headers:
            return answer("", status=304)
        since = query.get("since", "")
        found = sorted(
            (each for each in self.records if each["updated_at"] >= since),
            key=lambda each: (each["updated_at"], each["id"]),
        )
        start = (int(query.get("page", 1)) - 1) * self.size
        return reply({"items": found[start : start + self.size]}, ETag='"1"')

    def do_token(self, query: Query, body: Any, request: Request) -> RawResponse:
        """As servers do that want the client in the form, not in a header."""
        form = parse_qs((request.body or b"").decode())
        if form.get("client_secret") != [SECRET]:
            return reply({"error": "invalid_client"}, 401)
        assert form["grant_type"] == ["client_credentials"]
        self.tokens.append(f"token-{len(self.tokens)}-for-nobody-to-see")
        return reply({"access_token": self.tokens[-1], "expires_in": 600})

    def do_guarded(self, query: Query, body: Any, request: Request) -> RawResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens or token in self.bad_tokens:
            return reply({"error": "bad token"}, 401)
        return self.do_cursors(query, body, request)

    def do_basic(self, query: Query, body: Any, request: Request) -> RawResponse:
        wanted = base64.b64encode(f"me:{SECRET}".encode()).decode()
        is_let_in = request.headers.get("Authorization") == f"Basic {wanted}"
        return reply(self.records) if is_let_in else reply({}, 401)

    def do_header(self, query: Query, body: Any, request: Request) -> RawResponse:
        return reply(self.records) if request.headers.get("X-Key") == SECRET else reply({}, 403)

    @contextmanager
    def on_loopback(self, drops: int = 0) -> Iterator[str]:
        """The same over HTTP. The first `drops` answers of each path break off in the middle."""
        broken: Counter[str] = Counter()

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            body = await request.read()
            url = f"{self.origin}{request.path_qs}"
            raw = self.respond(Request(request.method, url, dict(request.headers), body))
            broken[request.path] += 1
            if broken[request.path] <= drops:
                return await _break_off(request, raw)
            return web.Response(status=raw.status, headers=_told(raw), body=raw.body)

        async def start() -> web.ServerRunner:
            runner = web.ServerRunner(web.Server(handle))
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return runner

        loop = asyncio.new_event_loop()
        runner = loop.run_until_complete(start())
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        self.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self.origin
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _break_off(request: web.BaseRequest, raw: RawResponse) -> web.StreamResponse:
    told = {**_told(raw), "Content-Length": str(len(raw.body))}
    response = web.StreamResponse(status=raw.status, headers=told)
    await response.prepare(request)
    await response.write(raw.body[: len(raw.body) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


def _told(raw: RawResponse) -> dict[str, str]:
    return {name.title(): value for name, value in raw.headers.items()}


def record(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"Item {number}",
        "description": f"the text of {number}",
        "updated_at": f"2026-11-{number % 28 + 1:02d}T10:00:00Z",
    }
