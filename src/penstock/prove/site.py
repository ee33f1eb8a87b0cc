"""A small site on loopback that counts who asked for what.

`/sitemap.xml?n=20&ms=5` names twenty pages that take 5 ms each, `/page/7?ms=5` is one of them,
`/flaky/7` fails the first time, `/hang` never answers, `/hung/7` not the first time, `/dropped/7` and
`/reset/7` end the connection in place of the first answer and `/half/7` in its middle, `/moved/7` redirects,
`/times` says when each request came, `/counts` says how often each path was asked for (without its query).
Connections are kept alive.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from typing import Self
from urllib.parse import parse_qs, urlsplit

DROPPED, RESET, HALF = -1, -2, -3
ENDS = {"dropped": (DROPPED, b""), "reset": (RESET, b""), "half": (HALF, b"this is but")}
START_TIMEOUT_S = 10.0


class Server:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.times: list[float] = []
        self.port = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def listen(self, addresses: int = 1) -> list[asyncio.Server]:
        """Take a free port, at so many addresses of this machine."""
        first = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.port = int(first.sockets[0].getsockname()[1])
        others = [f"127.0.0.{number}" for number in range(2, addresses + 1)]
        if not others:
            return [first]
        return [first, await asyncio.start_server(self._connected, others, self.port, backlog=1024)]

    def end(self) -> None:
        """Let go of everybody who is still connected."""
        for task in self._serving:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                host = head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0].decode()
                target = head.split(b" ", 2)[1].decode("latin-1")
                status, body = await self._answer(host, target)
                if status == RESET:
                    writer.transport.abort()
                if status in (DROPPED, RESET):
                    return
                length = 2 * len(body) if status == HALF else len(body)
                moved = b"Location: %b\r\n" % body if status == 302 else b""
                writer.write(
                    b"HTTP/1.1 %d Whatever\r\nContent-Type: text/plain\r\n%bContent-Length: %d\r\n\r\n"
                    % (200 if status == HALF else status, moved, length)
                )
                writer.write(body)
                await writer.drain()
                if status == HALF:
                    return
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, host: str, target: str) -> tuple[int, bytes]:
        url = urlsplit(target)
        options = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
        if url.path == "/counts":
            return 200, json.dumps(self.counts).encode()
        if url.path == "/times":
            return 200, json.dumps(self.times).encode()
        self.counts[url.path] += 1
        self.times.append(asyncio.get_running_loop().time())
        first, _, rest = url.path[1:].partition("/")
        if first in ENDS and self.counts[url.path] == 1:
            return ENDS[first]
        if first == "moved":
            return 302, f"/page/{rest}".encode()
        if url.path == "/robots.txt":
            return 404, b""
        if url.path == "/hang" or (first == "hung" and self.counts[url.path] == 1):
            await asyncio.sleep(3600)
        if options.get("ms"):
            await asyncio.sleep(options["ms"] / 1000)
        if url.path == "/sitemap.xml":
            return 200, sitemap(host, options)
        if url.path.startswith("/flaky/") and self.counts[url.path] == 1:
            return 500, b"not yet"
        return 200, url.path.encode()


def sitemap(host: str, options: dict[str, int]) -> bytes:
    tail = f"?ms={options['page_ms']}" if "page_ms" in options else ""
    pages = (
        f"<url><loc>http://{host}/page/{number}{tail}</loc></url>" for number in range(options["n"])
    )
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<urlset xmlns="{space}">{"".join(pages)}</urlset>'.encode()


class Site:
    """The same server in a thread of this process; a context manager."""

    def __init__(self) -> None:
        self._server = Server()
        self._thread = threading.Thread(target=self._run, name="counting-site", daemon=True)
        self._is_ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._is_ready.wait(START_TIMEOUT_S):
            raise RuntimeError("the site on loopback did not start")
        self.port = self._server.port
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        return Counter(self._server.counts)

    def forget(self) -> None:
        """Count from nothing again."""
        self._server.counts.clear()
        self._server.times.clear()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listeners = await self._server.listen()
        self._is_ready.set()
        await self._stop.wait()
        for listener in listeners:
            listener.close()
        self._server.end()
