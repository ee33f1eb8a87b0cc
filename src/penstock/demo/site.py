"""The demo site: four hosts on loopback, each on a port of its own, served from one thread."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType

from aiohttp import web

from penstock.demo import archive, catalogue, flaky, news
from penstock.demo.folder import origin
from penstock.demo.replies import Answer, Drop, Hang, Pages, Reply, reply_to

HOSTS: dict[str, Callable[[str], Pages]] = {
    "catalogue": catalogue.pages,
    "news": news.pages,
    "flaky": flaky.pages,
    "archive": archive.pages,
}
NOT_FOUND = Answer(b"no such page\n", status=404)
START_TIMEOUT_S = 10.0


class Site:
    """The hosts while they are served; a context manager.

    Asks for the ports it is given and takes free ones where those are taken: `ports` says which.
    Visits are counted from the start of the site, so every start behaves the same.
    """

    def __init__(self, ports: Mapping[str, int] | None = None) -> None:
        wanted = ports or {}
        self._sockets = {name: _listen(wanted.get(name, 0)) for name in HOSTS}
        self.ports = {name: sock.getsockname()[1] for name, sock in self._sockets.items()}
        self.origins = {name: origin(port) for name, port in self.ports.items()}
        self._pages = {name: pages(self.origins[name]) for name, pages in HOSTS.items()}
        self._thread = threading.Thread(target=self._run, name="demo-site", daemon=True)
        self._is_ready = threading.Event()

    def __enter__(self) -> Site:
        self._thread.start()
        if not self._is_ready.wait(START_TIMEOUT_S):
            raise RuntimeError("the demo site did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def turn_to_the_second_day(self) -> None:
        """From now on the shop is as it is on the day after."""
        self._pages["catalogue"] = catalogue.pages(self.origins["catalogue"], is_second_day=True)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runners = [await self._start(name) for name in HOSTS]
        self._is_ready.set()
        await self._stop.wait()
        for runner in runners:
            await runner.cleanup()

    async def _start(self, name: str) -> web.ServerRunner:
        server = web.Server(self._answerer(name), access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await runner.setup()
        await web.SockSite(runner, self._sockets[name]).start()
        return runner

    def _answerer(self, name: str) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        visits: Counter[str] = Counter()

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            visits[request.path] += 1
            page = self._pages[name].get(request.path, (NOT_FOUND,))
            return await self._give(request, reply_to(page, visits[request.path]))

        return answer

    async def _give(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        match reply:
            case Answer(body, 200, content_type, headers):
                return _unless_known(request, body, {**headers, "Content-Type": content_type})
            case Answer(body, status, content_type, headers):
                return web.Response(
                    body=body, status=status, headers={**headers, "Content-Type": content_type}
                )
            case Hang():
                await self._stop.wait()
                return web.Response(status=504)
            case Drop(body):
                return await _give_half(request, body)


def _unless_known(
    request: web.BaseRequest, body: bytes, headers: Mapping[str, str]
) -> web.Response:
    """The page, or only that it is the one the client has already."""
    tag = f'"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(body=body, headers={**headers, "ETag": tag})


async def _give_half(request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def _listen(port: int) -> socket.socket:
    """A listening socket on this port of loopback, or on any free one if it is taken."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
    except OSError:
        sock.bind(("127.0.0.1", 0))
    # Listening now keeps the port: until it listens, another socket may bind the same one.
    sock.listen()
    return sock
