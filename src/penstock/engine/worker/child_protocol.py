"""What a worker and its child processes say to each other, and how it travels.

Each message is MessagePack behind its length, on a socket of its own, so that whatever a step
prints can't disturb it. Errors travel as data and are made again on the other side.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.http.failures import (
    AddressRefused,
    BudgetSpent,
    Disallowed,
    FetchError,
    HostBroken,
    HostClosed,
    HostOutside,
    Kind,
    Paced,
    RobotsUnreachable,
)
from penstock.jobs.effects import Effects, Extracted
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import (
    AttemptLost,
    Cancelled,
    Failed,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
    Throttled,
    Unchanged,
)
from penstock.pipeline.attempt import StepRun, StepSource

MAX_FRAME = 1 << 30
_CLOSED = {kind.__name__: kind for kind in (HostClosed, HostBroken, HostOutside, Paced)}
_FETCH_ERRORS = {
    kind.__name__: kind
    for kind in (FetchError, Disallowed, RobotsUnreachable, AddressRefused, BudgetSpent)
}
_OUTCOMES: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Succeeded, Failed, Throttled, Snoozed, Skipped, Cancelled)
}


@dataclass(frozen=True, slots=True)
class Charge:
    """What a child is told. A stage is code, so it travels by name: the child loads it itself."""

    pipeline: str
    stage: str
    job: Claimed
    source: StepSource
    run: StepRun


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Worker to child: perform this."""

    charge: Charge


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Child to worker: the pipeline is loaded; from here the attempt's time runs."""


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Child to worker: do this for me, as one of the worker's services."""

    number: int
    service: str
    body: bytes


class Answer(msgspec.Struct, frozen=True, tag=True):
    """Worker to child: here is what you asked for."""

    number: int
    body: bytes


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Worker to child: what you asked for ended in this error."""

    number: int
    error: str
    message: str
    url: str = ""
    status: int | None = None
    is_permanent: bool = False
    kind: Kind | None = None
    host: str = ""
    delay_s: float = 0.0
    page: Extracted | None = None


class End(msgspec.Struct, frozen=True, tag=True):
    """Child to worker: what the attempt came to."""

    kind: str
    body: bytes


Message = Begin | Ready | Ask | Answer | Refusal | End
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class Channel:
    """One side of the conversation. `receive` answers None when the other side is gone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, message: Message) -> None:
        frame = msgspec.msgpack.encode(message)
        self._writer.write(len(frame).to_bytes(4, "big") + frame)
        await self._writer.drain()

    async def receive(self) -> Message | None:
        try:
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            if length > MAX_FRAME:
                return None
            return _decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
            return None

    def close(self) -> None:
        self._writer.close()


def pack(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def end_of(outcome: Outcome) -> End:
    return End(type(outcome).__name__, pack(outcome))


def outcome_from(end: End) -> Outcome:
    """The outcome a child reports; a report that makes no sense is a failure of its job."""
    try:
        outcome: Outcome = msgspec.msgpack.decode(end.body, type=_OUTCOMES[end.kind])
    except (KeyError, msgspec.DecodeError) as error:
        return Failed(f"the child process reported nothing that can be read: {error}")
    return outcome


def effects_from(body: bytes) -> Effects:
    return msgspec.msgpack.decode(body, type=Effects)


def refusal_of(number: int, error: BaseException) -> Refusal:
    name = type(error).__name__
    match error:
        case HostClosed():
            return Refusal(
                number, name, "", error.url, error.status, host=error.host, delay_s=error.delay_s
            )
        case FetchError():
            told = (error.message, error.url, error.status, error.is_permanent, error.kind)
            return Refusal(number, name, *told)
        case Unchanged():
            return Refusal(number, name, error.why, page=error.page)
    return Refusal(number, name, str(error))


def error_from(refusal: Refusal) -> Exception:
    """The error as the step should meet it; one that means nothing to a step becomes a plain one."""
    if refusal.error in _CLOSED:
        closed = _CLOSED[refusal.error]
        return closed(refusal.host, refusal.delay_s, refusal.url, refusal.status)
    if refusal.error in _FETCH_ERRORS:
        failed = _FETCH_ERRORS[refusal.error]
        told = (refusal.message, refusal.url, refusal.status, refusal.is_permanent, refusal.kind)
        return failed(*told)
    if refusal.error == Unchanged.__name__:
        return Unchanged(refusal.message, refusal.page)
    if refusal.error == AttemptLost.__name__:
        return AttemptLost(refusal.message)
    return RuntimeError(f"{refusal.error}: {refusal.message}")
