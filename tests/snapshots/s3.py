"""A real S3 server on loopback, and the wire to it, on which things go wrong when a test says so."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY_ID = "AKIDOFTHETESTS"
SECRET = "secret/of+the+tests"
SIGNED = {
    "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY_ID}/20300101/us-east-1/s3/aws4_request"
}
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "server", "date"}
# What S3 answers to a wrong signature: all that must never be shown.
DENIED = (
    f"<Message>no</Message><AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId>"
    f"<StringToSign>AWS4-HMAC-SHA256 {SECRET}</StringToSign>"
)


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of a server that lives as long as this does."""
    script = Path(__file__).with_name("s3_server.py")
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def environment(port: int) -> dict[str, str]:
    """What a process needs to find the server, and nothing that could lead it anywhere else."""
    return {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_METADATA_ENDPOINT": f"http://127.0.0.1:{port}/metadata",
        "NO_PROXY": "127.0.0.1",
    }


@dataclass(slots=True)
class Fault:
    """What happens to a request instead of passing."""

    status: int = 0
    code: str = ""
    body: str = ""
    is_passed_on: bool = False
    is_held: bool = False
    method: str = ""
    times: int = 1_000_000


@dataclass
class Wire:
    """Passes requests on to the server. `port` stays the same while it is cut and mended."""

    upstream: int
    port: int = 0
    requests: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    def mend(self) -> None:
        """Listen (again), and forget every fault."""
        self.faults.clear()
        self.released.set()
        if self._server is None:
            handler = type("Handler", (_Handler,), {"wire": self})
            self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
            self.port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def cut(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def fail(self, status: int, code: str = "", **more: Any) -> None:
        self.faults.append(Fault(status, code, **more))

    def hang(self) -> None:
        """Take requests and answer none of them before the wire is mended."""
        self.released.clear()
        self.faults.append(Fault(is_held=True))

    def fault(self, method: str) -> Fault | None:
        for fault in self.faults:
            if fault.times and fault.method in ("", method):
                fault.times -= 1
                return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    wire: Wire

    def handle_one(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        self.wire.requests.append(f"{self.command} {self.path}")
        fault = self.wire.fault(self.command)
        if fault is not None and fault.is_held:
            self.wire.released.wait(60)
        if fault is None or fault.is_passed_on:
            answer = ask(self.wire.upstream, self.command, self.path, body, dict(self.headers))
        if fault is not None:
            text = f"<Error><Code>{fault.code}</Code>{fault.body}</Error>"
            answer = Answer(fault.status or 500, {"Content-Type": "application/xml"}, text.encode())
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header(
            "Content-Length", answer.headers.get("Content-Length", str(len(answer.body)))
        )
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        return None


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    port: int, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> Answer:
    """One request to the server, which believes whoever says that he has signed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers or SIGNED)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()
