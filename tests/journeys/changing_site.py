"""A site on loopback that a test can change while it is served: pages with ETags and times, counted."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChangingSite:
    """What is served now. `counts` is how often each path was sent whole, `asked` how often at all."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, str]] = {}
        self.asked: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.is_down = False
        self.url = ""

    def page(self, path: str, body: str, lastmod: str = "") -> None:
        self.pages[path] = (body, lastmod)

    def take(self) -> tuple[dict[str, int], dict[str, int]]:
        """(asked, sent) since the last look."""
        asked, self.asked = self.asked, Counter()
        sent, self.sent = self.sent, Counter()
        return dict(asked), dict(sent)

    def answer(self, path: str, known_tag: str) -> tuple[int, str, bytes]:
        """The status, the tag and the body."""
        self.asked[path] += 1
        if path == "/sitemap.xml":
            return 200, "", self._sitemap()
        found = self.pages.get(path)
        if found is None or self.is_down:
            return 410, "", b"gone"
        body = found[0].encode()
        tag = '"' + hashlib.sha256(body).hexdigest() + '"'
        if known_tag == tag:
            return 304, tag, b""
        self.sent[path] += 1
        return 200, tag, body

    def _sitemap(self) -> bytes:
        rows = "".join(
            f"<url><loc>{self.url}{path}</loc>"
            + (f"<lastmod>{lastmod}</lastmod>" if lastmod else "")
            + "</url>"
            for path, (_, lastmod) in self.pages.items()
        )
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return f'<urlset xmlns="{space}">{rows}</urlset>'.encode()


@contextmanager
def changing_site() -> Iterator[ChangingSite]:
    site = ChangingSite()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, tag, body = site.answer(self.path, self.headers.get("If-None-Match", ""))
            self.send_response(status)
            if tag:
                self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
