"""A small site on loopback, in a process of its own, that counts who asked for what.

    python counting_server.py        prints its port, serves until its standard input ends

`/sitemap.xml?n=20&ms=5` names twenty pages that take 5 ms each, `/page/7?ms=5` is one of them,
`/flaky/7` fails the first time, `/hang` never answers, `/dropped/7` and `/reset/7` end the connection in
place of the first answer, `/moved/7` redirects to `/page/7`, `/times` says when each request came,
`/counts` says how often each path was asked
for (without its query). Connections are kept alive. It has twenty addresses, 127.0.0.1 to 127.0.0.20, all
with the same port: to Penstock each is a host of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from urllib.parse import parse_qs, urlsplit

DROPPED, RESET = -1, -2
ENDS = {"dropped": DROPPED, "reset": RESET}


class Server:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.times: list[float] = []

    async def serve(self) -> None:
        first = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        port = first.sockets[0].getsockname()[1]
        others = [f"127.0.0.{number}" for number in range(2, 21)]
        await asyncio.start_server(self._connected, others, port, backlog=1024)
        print(port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
                moved = b"Location: %b\r\n" % body if status == 302 else b""
                writer.write(
                    b"HTTP/1.1 %d Whatever\r\nContent-Type: text/plain\r\n%bContent-Length: %d\r\n\r\n"
                    % (status, moved, len(body))
                )
                writer.write(body)
                await writer.drain()
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
            return ENDS[first], b""
        if first == "moved":
            return 302, f"/page/{rest}".encode()
        if url.path == "/robots.txt":
            return 404, b""
        if url.path == "/hang":
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


if __name__ == "__main__":
    asyncio.run(Server().serve())
