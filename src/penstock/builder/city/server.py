"""The city while it is served: one port of loopback that stands for all its hosts, as a proxy does.

A source reaches it by `fetch.proxy`: whatever host a request names is answered here, and none elsewhere.
Faults come at the first visit of a site, and every start of the city behaves the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections import Counter
from types import TracebackType
from typing import Any

import msgspec
from aiohttp import web

from penstock.builder.city.services import HOSTS, SEARCH, Services
from penstock.builder.city.site_pages import page
from penstock.builder.city.world import SUFFIX, Resident, World

START_TIMEOUT_S = 30.0
SLOW_S, SILENT_S = 0.2, 0.5
HTML, JSON, XML = "text/html; charset=utf-8", "application/json", "application/xml"
# Of so many questions, the search fails at one when it is asked first.
SEARCH_FAILS_AT = 40


class City:
    """The servers of a city; a context manager. `requests` are all that came, by host."""

    def __init__(self, world: World, port: int = 0) -> None:
        self.world = world
        self.requests: Counter[str] = Counter()
        # Those for pages and answers: robots.txt counts in no budget.
        self.counted = 0
        self.bytes_sent = 0
        self._services = Services(world)
        self._sites = {each.host: each for each in world.residents if each.has_own_site}
        self._visits: Counter[str] = Counter()
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen(512)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="city", daemon=True)
        self._is_ready = threading.Event()

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> City:
        self._thread.start()
        if not self._is_ready.wait(START_TIMEOUT_S):
            raise RuntimeError("the city did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = web.Server(self._answer, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        await web.SockSite(runner, self._socket).start()
        self._is_ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        host = request.host.partition(":")[0].lower()
        self.requests[host] += 1
        if request.path == "/robots.txt":
            return web.Response(status=404)
        self.counted += 1
        if host in HOSTS:
            return await self._service(host, request)
        resident = self._sites.get(host.removeprefix("www."))
        if resident is None or resident.site == "gone":
            return web.Response(status=502, text=f"there is no host {host[: -len(SUFFIX)]}\n")
        return await self._site(resident, host, request)

    async def _service(self, host: str, request: web.BaseRequest) -> web.StreamResponse:
        query = request.query
        if host == SEARCH and self._fails_first(query.get("q", "")):
            return web.Response(status=500, text="the search is confused\n")
        found = self._services.answer(host, request.path, query, await request.read())
        if found is None:
            return web.Response(status=404)
        if isinstance(found, bytes):
            return self._sent(found, XML if request.path.endswith(".xml") else HTML)
        return self._sent(msgspec.json.encode(found), JSON)

    def _fails_first(self, question: str) -> bool:
        digest = hashlib.blake2b(question.encode(), digest_size=4).digest()
        if int.from_bytes(digest, "big") % SEARCH_FAILS_AT:
            return False
        return self._is_first(question)

    def _is_first(self, what: str) -> bool:
        self._visits[what] += 1
        return self._visits[what] == 1

    def _sent(self, body: bytes, content_type: str) -> web.Response:
        self.bytes_sent += len(body)
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _site(
        self, resident: Resident, host: str, request: web.BaseRequest
    ) -> web.StreamResponse:
        fault = resident.site
        if fault == "silent":
            # It hangs up before a patient client does: no client has to know what time is here.
            await asyncio.sleep(SILENT_S)
            return _hung_up(request)
        if fault == "slow":
            await asyncio.sleep(SLOW_S)
        if fault == "moved" and not host.startswith("www."):
            return web.Response(
                status=301, headers={"Location": f"http://www.{host}{request.path}"}
            )
        body = page(resident, request.path)
        if body is None:
            return web.Response(status=404)
        if fault in ("throttled", "overloaded", "torn") and self._is_first(host):
            return await self._failed(fault, request, body)
        return self._sent(body, HTML)

    async def _failed(
        self, fault: str, request: web.BaseRequest, body: bytes
    ) -> web.StreamResponse:
        if fault == "throttled":
            return web.Response(status=429, headers={"Retry-After": "1"})
        if fault == "overloaded":
            return web.Response(status=503, headers={"Retry-After": "1"})
        torn = web.StreamResponse(headers={"Content-Length": str(len(body))})
        await torn.prepare(request)
        await torn.write(body[: len(body) // 2])
        _hang_up(request)
        return torn


def _hung_up(request: web.BaseRequest) -> web.StreamResponse:
    _hang_up(request)
    return web.Response(status=504)


def _hang_up(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.close()


def job_of_city(*, has_maps: bool = False) -> dict[str, Any]:
    """The job that builds a city's dataset; its dumps lie beside penstock.yaml."""
    from penstock.builder.city import services

    job: dict[str, Any] = {
        "niche": "companies of the city",
        "country": "US",
        "dumps": [
            {"path": "register.csv.gz", "name": "register"},
            {"path": "leads.jsonl", "name": "leads"},
        ],
        "api": {"endpoints": [{"url": f"http://{services.CHAMBER}/members", "name": "chamber"}]},
        "sitemap": {"urls": [f"http://{services.DIRECTORY}/sitemap.xml"]},
        "address": {"geocoder": "photon", "url": f"http://{services.GEOCODER}"},
        "serp": {"provider": "searx", "url": f"http://{services.SEARCH}"},
        "dns": {"url": f"http://{services.DNS}/resolve"},
    }
    if has_maps:
        job["maps"] = {"url": f"http://{services.MAPS}"}
    return job
