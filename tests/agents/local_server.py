"""A server on this machine that answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Answers a path and a body with a status, a type and a body.
Answer = Callable[[str, bytes], tuple[int, str, bytes]]


@dataclass
class Local:
    """Where it is, and what it was asked: method, path, headers and body."""

    url: str
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def serving(answer: Answer) -> Iterator[Local]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            local.asked.append((self.command, self.path, dict(self.headers), body))
            status, kind, found = answer(self.path, body)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    local = Local(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield local
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
