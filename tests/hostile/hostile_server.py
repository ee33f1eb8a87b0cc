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
from functools import cache

ROBOTS = b"".join(b"User-agent: a%05d\n" % n for n in range(16_000)) + b"User-agent: *\n"
ROBOTS += b"".join(b"Disallow: /%05d\n" % n for n in range(9_900))
TEXT = [("Content-Type", "text/plain")]
PACKED = [("Content-Encoding", "gzip")]
CHARSET = [("Content-Type", "text/html; charset=" + " " * 15_000 + "!")]
HEADERS = [(f"X-{n}", "a" * 16_000) for n in range(100)]


@cache
def document(kind: str) -> bytes:
    """What the kinds serve that are harmful by their bodies; made when it is asked for."""
    match kind:
        case "xml":
            row = b"<url>" + b"<a/>" * 19_000 + b"</url>"
            return gzip.compress(b"<urlset>" + row * 200, 6)
        case "line":
            return gzip.compress(b"http://" + b"a" * 16_000_000, 6)
        case "lines":
            lines = (b"http://127.0.1.1/%07d\n" % n for n in range(400_000))
            return gzip.compress(b"".join(lines), 6)
        case "feed":
            return b"<rss>" + (b"<item>" + b"<title>a</title>" * 4_000 + b"</item>") * 200
        case "packed feed":
            return gzip.compress(document("feed"), 6)
    return gzip.compress(b"\0" * 15_000_000, 9)


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
            case "xml" | "line":
                return 200, TEXT, document(kind)
            case "feed":
                return 200, PACKED, document("packed feed")
            case "bomb":
                return 200, PACKED, document("bomb")
            case "charset":
                return 200, CHARSET, b"hello"
            case "headers":
                return 200, HEADERS, b"hello"
        return 200, TEXT, b"hello"

    def _index(self, host: str, kind: str) -> bytes:
        """Sitemaps, or pages, under names that were never used."""
        name = "sitemap" if kind in ("xml", "line") else "url"
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
