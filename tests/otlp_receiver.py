"""A collector on loopback: takes traces over OTLP/HTTP, and decodes their protobuf."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    status: int
    message: str
    started_ns: int
    ended_ns: int
    links: tuple[str, ...]
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Collector:
    """`is_stuck` is to be set to have it never answer again, until it is closed."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    was_asked: threading.Event = field(default_factory=threading.Event)
    is_closing: threading.Event = field(default_factory=threading.Event)
    is_stuck: bool = False

    def named(self, start: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(start)]

    def take(self, headers: dict[str, str], body: bytes) -> None:
        self.headers.append(headers)
        plain = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        request = ExportTraceServiceRequest.FromString(plain)
        for group in request.resource_spans:
            resource = values(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += [_span(each, resource) for each in scope.spans]


def _span(each: Any, resource: dict[str, Any]) -> Span:
    return Span(
        name=each.name,
        trace_id=each.trace_id.hex(),
        span_id=each.span_id.hex(),
        parent_id=each.parent_span_id.hex(),
        kind=each.kind,
        status=each.status.code,
        message=each.status.message,
        started_ns=each.start_time_unix_nano,
        ended_ns=each.end_time_unix_nano,
        links=tuple(link.span_id.hex() for link in each.links),
        attributes=values(each.attributes),
        resource=resource,
    )


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.was_asked.set()
            if collector.is_stuck:
                collector.is_closing.wait()
                return
            is_traces = self.path == "/v1/traces"
            if is_traces:
                collector.take({k.lower(): v for k, v in self.headers.items()}, body)
            self.send_response(200 if is_traces else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield collector
        finally:
            collector.is_closing.set()
            server.shutdown()
            serving.join()
