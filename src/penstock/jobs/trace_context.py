"""Trace context: the ids of the spans of a run, and W3C `traceparent` as it comes in and goes out.

Ids are made of what they stand for, so that processes on many hosts that know nothing of each other make one
trace: the run's of the project, the run and when it was created, a job's of the run's and its number. A span
that is sent twice has the same id twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

FIELD = "traceparent"
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST = 200
_SAMPLED = 1
_SAMPLE_BITS = 64


@dataclass(frozen=True, slots=True)
class Parent:
    """The span of another program that a run belongs to."""

    trace_id: int
    span_id: int
    is_sampled: bool


@dataclass(frozen=True, slots=True)
class RunTrace:
    """The trace of one run; `span_id` is the run's own span."""

    trace_id: int
    span_id: int
    parent: Parent | None = None
    is_sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.is_sampled):02x}"

    def job(self, job_id: int) -> int:
        return _span(self.span_id, "job", job_id)

    def attempt(self, job_id: int, attempt: int) -> int:
        return _span(self.span_id, "attempt", job_id, attempt)

    def fetch(self, job_id: int, attempt: int, number: int) -> int:
        return _span(self.span_id, "fetch", job_id, attempt, number)


def trace_of(
    project: str, run_id: int, created_at: float, signal_data: Any = None, sample: float = 1.0
) -> RunTrace:
    """The trace that a run belongs to: its own, or the one that the data of its signal names.

    `sample` is the share of runs that are traced; whoever sent a traceparent has decided that already.
    """
    name = f"{project}\0{run_id}\0{created_at:.3f}"
    span_id = _number(f"run\0{name}", 8)
    parent = parent_of(signal_data)
    if parent is not None:
        return RunTrace(parent.trace_id, span_id, parent, parent.is_sampled)
    trace_id = _number(f"trace\0{name}", 16)
    drawn = trace_id % (1 << _SAMPLE_BITS)
    return RunTrace(trace_id, span_id, None, drawn < sample * (1 << _SAMPLE_BITS))


def parent_of(signal_data: Any) -> Parent | None:
    """What the field `traceparent` of a signal's data names; None if it has none that can be read."""
    text = signal_data.get(FIELD) if isinstance(signal_data, Mapping) else None
    return parsed(text) if isinstance(text, str) else None


def parsed(traceparent: str) -> Parent | None:
    """By the rules of W3C Trace Context; None for what must be ignored."""
    text = traceparent.strip()[:_LONGEST]
    found = _TRACEPARENT.fullmatch(text)
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return Parent(trace_id, span_id, bool(int(found[4], 16) & _SAMPLED))


def with_traceparent(signal_data: Any, traceparent: str | None) -> Any:
    """A signal's data with the caller's traceparent in it, where both allow it and it has none of its own."""
    if traceparent is None or parsed(traceparent) is None:
        return signal_data
    if signal_data is None:
        return {FIELD: traceparent.strip()}
    if isinstance(signal_data, Mapping) and FIELD not in signal_data:
        return {**signal_data, FIELD: traceparent.strip()}
    return signal_data


def _span(run_span: int, *names: object) -> int:
    return _number("\0".join(map(str, (f"{run_span:016x}", *names))), 8)


def _number(text: str, size: int) -> int:
    # W3C refuses an id of zeroes.
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest()) or 1
