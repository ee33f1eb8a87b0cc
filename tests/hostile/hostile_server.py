"""Sites on loopback that mean harm, in a process of their own.

    python hostile_server.py        prints its port, serves until its standard input ends

Each of its addresses, 127.0.1.1 to 127.0.1.250, is a host of its own. `/KIND/index` is a sitemap without end
of pages `/KIND/1` …; what is served there depends on the kind. `/counts` says how often each kind was
asked for.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import sys
from collections import Counter

ROBOTS = b"".join(b"User-agent: a%05d\n" % n for n in range(16_000)) + b"User-agent: *\n"
ROBOTS += b"".join(b"Disallow: /%05d\n" % n for n in range(9_900))
ROW = b"<url>" + b"<a/>" * 19_000 + b"</url>"
XML = b"<urlset>" + ROW * 200
PACKED_XML = gzip.compress(XML, 6)
TEXT = [("Content-Type", "text/plain")]
CHARSET = [("Content-Type", "text/html; charset=" + " " * 15_000 + "!")]


class Server:
    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.counts: Counter[str] = Counter()

    async def serve(self) -> None:
        first = await asyncio.start_server(self._connected, "127.0.1.1", 0, backlog=1024)
        port = first.sockets[0].getsockname()[1]
        others = [f"127.0.1.{number}" for number in range(2, 251)]
        await asyncio.start_server(self._connected, others, port, backlog=1024)
        print(port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                host = head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0].decode()
                path = head.split(b" ", 2)[1].decode("latin-1")
                status, headers, body = self._answer(host, path)
                lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
                lines += [f"{name}: {value}" for name, value in headers]
                writer.write("\r\n".join([*lines, "\r\n"]).encode() + body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _answer(self, host: str, path: str) -> tuple[int, list[tuple[str, str]], bytes]:
        kind = path.split("/")[1]
        if path == "/counts":
            return 200, [], json.dumps(self.counts).encode()
        self.counts[kind] += 1
        if path == "/robots.txt":
            return 200, TEXT, ROBOTS
        if path.endswith("/index"):
            return 200, [], self._index(host, kind)
        match kind:
            case "xml":
                return 200, [], PACKED_XML
            case "charset":
                return 200, CHARSET, b"hello"
        return 200, TEXT, b"hello"

    def _index(self, host: str, kind: str) -> bytes:
        """Sitemaps, or pages, under names that were never used."""
        name = "sitemap" if kind == "xml" else "url"
        root = "sitemapindex" if name == "sitemap" else "urlset"
        hosts = itertools.cycle([host])
        if kind == "robots":
            hosts = itertools.cycle(
                [f"127.0.1.{n}:{host.rpartition(':')[2]}" for n in range(1, 251)]
            )
        rows = (
            f"<{name}><loc>http://{next(hosts)}/{kind}/{next(self._numbers)}</loc></{name}>"
            for _ in range(40_000 if kind == "charset" else 2_000)
        )
        return f"<{root}>{''.join(rows)}</{root}>".encode()


if __name__ == "__main__":
    asyncio.run(Server().serve())
