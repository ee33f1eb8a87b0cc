"""What a worker and its child processes say to each other, and how it travels.

Each message is MessagePack behind its length, on a socket of its own, so that whatever a step
prints can't disturb it. What the worker sends may hold pickles; what a child sends never does,
because it runs code that the worker need not trust.
"""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.jobs.job import Claimed
from penstock.jobs.outcome import (
    Cancelled,
    Effects,
    Failed,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
    Throttled,
)
from penstock.pipeline.attempt import RunView, SourceView

MAX_FRAME = 1 << 30
_OUTCOMES: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Succeeded, Failed, Throttled, Snoozed, Skipped, Cancelled)
}


@dataclass(frozen=True, slots=True)
class Charge:
    """What a child is told. A stage is code, so it travels by name: the child loads it itself."""

    pipeline: str
    stage: str
    job: Claimed
    source: SourceView
    run: RunView


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Worker to child: perform this. `charge` is a pickled Charge."""

    charge: bytes


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Child to worker: the pipeline is loaded; from here the attempt's time runs."""


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Child to worker: do this for me, as one of the worker's services."""

    number: int
    service: str
    body: bytes


class Answer(msgspec.Struct, frozen=True, tag=True):
    """Worker to child: a pickled value, or a pickled exception."""

    number: int
    body: bytes
    is_error: bool = False


class End(msgspec.Struct, frozen=True, tag=True):
    """Child to worker: what the attempt came to."""

    kind: str
    body: bytes


Message = Begin | Ready | Ask | Answer | End
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
        return Failed(
            f"the child process reported nothing that can be read: {error}", kind="crashed"
        )
    return outcome


def effects_from(body: bytes) -> Effects:
    return msgspec.msgpack.decode(body, type=Effects)


def answer_of(number: int, value: Any) -> Answer:
    return Answer(number, pickle.dumps(value))


def refusal_of(number: int, error: BaseException) -> Answer:
    try:
        body = pickle.dumps(error)
        pickle.loads(body)  # noqa: S301  our own bytes; some exceptions pickle but don't unpickle
    except Exception:
        body = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return Answer(number, body, is_error=True)
