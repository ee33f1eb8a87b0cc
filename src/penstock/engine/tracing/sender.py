"""The sender: a thread that makes spans of notes and sends them, whatever the collector does.

Notes wait in a queue of bounded length: when it is full, the oldest are left out and counted. A collector
that is down costs this thread its patience and nobody else anything.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.clock import Clock
from penstock.counting import count
from penstock.errors import ConfigError, StoreError
from penstock.settings.values import TracingSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

MOST_NOTES = 20_000
BATCH = 500
EVERY_S = 1.0
SEND_TIMEOUT_S = 5.0
# What is left when Penstock stops is sent, if that takes no longer.
PARTING_S = 4.0
SAY_EVERY_S = 60.0
Note = TypeVar("Note")


def refuse_missing(settings: TracingSettings) -> None:
    """Refuse to start where traces are wanted and can't be sent."""
    if settings.endpoint is None:
        return
    try:
        is_there = find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise ConfigError(
            "tracing.endpoint needs OpenTelemetry, which is not installed",
            "pip install 'penstock[otel]', or remove tracing from penstock.yaml",
        )


class Sender(Generic[Note]):
    """Sends what is added. `spans_of` is called in its thread, and may ask a store of its own."""

    def __init__(
        self,
        settings: TracingSettings,
        spans_of: Callable[[list[Note]], Iterable[ReadableSpan]],
        tell: Callable[[str], None],
        clock: Clock,
        noun: str,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._spans_of = spans_of
        self._tell = tell
        self._clock = clock
        self._noun = noun
        self._close = close
        self._notes: deque[Note] = deque(maxlen=MOST_NOTES)
        self._stopping = threading.Event()
        self._left_out = 0
        self._say_at = float("-inf")
        self._is_failing = False
        self._shut_down: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="tracing", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, note: Note) -> None:
        """Never waits."""
        if len(self._notes) == MOST_NOTES:
            self._left_out += 1
        self._notes.append(note)

    def stop(self) -> None:
        """Send what is left, and wait for it, but not for long."""
        self._stopping.set()
        self._thread.join(PARTING_S)
        self._shut_down()

    def _run(self) -> None:
        try:
            send = self._exporter()
            while not self._stopping.wait(EVERY_S):
                self._send_all(send)
            self._send_all(send)
        except (
            Exception
        ) as error:  # a defect here must not reach the work, nor an operator as a traceback
            if not self._stopping.is_set():
                self._tell(f"tracing: stopped by {type(error).__name__}: {error}")
        finally:
            with suppress(StoreError):
                self._close()

    def _send_all(self, send: Callable[[list[ReadableSpan]], bool]) -> None:
        for _ in range(MOST_NOTES // BATCH):
            notes = self._take()
            if not notes:
                return
            try:
                spans = list(self._spans_of(notes))
            except StoreError:
                self._left_out += len(notes)
                continue
            self._note(not spans or send(spans), len(notes))

    def _take(self) -> list[Note]:
        notes: list[Note] = []
        with suppress(IndexError):  # others only add
            while len(notes) < BATCH:
                notes.append(self._notes.popleft())
        return notes

    def _note(self, is_sent: bool, notes: int) -> None:
        """Say it when the collector is lost and found again, not each time."""
        where, now = self._settings.endpoint, self._clock.monotonic()
        if not is_sent:
            self._left_out += notes
            if now >= self._say_at:
                lost = count(self._left_out, self._noun)
                self._tell(f"tracing: {where} does not accept traces; {lost} left out so far")
                self._say_at = now + SAY_EVERY_S
        elif self._is_failing:
            lost = count(self._left_out, self._noun)
            self._tell(f"tracing: {where} accepts traces again; {lost} left out")
            self._left_out, self._say_at = 0, float("-inf")
        self._is_failing = not is_sent

    def _exporter(self) -> Callable[[list[ReadableSpan]], bool]:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult

        # It says everything it meets, each time, with the collector's answer; we say it once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        exporter = OTLPSpanExporter(
            self._settings.endpoint,
            headers=dict(self._settings.headers),
            timeout=SEND_TIMEOUT_S,
        )
        self._shut_down = exporter.shutdown
        return lambda spans: exporter.export(spans) is SpanExportResult.SUCCESS
