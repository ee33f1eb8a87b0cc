"""A job is one durable unit of work of a run: a stage of the pipeline applied to one item."""

from __future__ import annotations

import hashlib
import math
from enum import StrEnum
from typing import Any, Literal

import msgspec

Unit = Literal["run", "page", "candidate"]

# A job's rank is `enqueued_at + priority * AGEING_S`. Ordering by it is priority with linear ageing:
# a job overtakes one that is a step more urgent after waiting this much longer, however long the
# queue is, so nothing starves and no index ever has to be re-sorted.
AGEING_S = 60.0
DEFAULT_PRIORITY = 5
KEY_LENGTH = 240


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    QUARANTINED = "quarantined"
    CANCELLED = "cancelled"


class NewJob(msgspec.Struct, frozen=True):
    """A job to enqueue. `item` is JSON; `key` makes it idempotent within its run and stage.

    `snapshot` is the page that the item came from.
    """

    stage: str
    key: str
    item: bytes
    priority: int = DEFAULT_PRIORITY
    snapshot: int | None = None


class Claimed(msgspec.Struct, array_like=True, frozen=True):
    """A job as the worker that claimed it sees it; `attempt` is the fence for all it writes."""

    id: int
    run_id: int
    source_id: int
    stage: str
    key: str
    attempt: int
    tries: int
    throttles: int
    deaths: int
    is_resumed: bool
    item: str
    snapshot: int | None = None


class Owned(msgspec.Struct, array_like=True, frozen=True):
    """A job whose attempt still owns it."""

    id: int
    run_id: int
    source_id: int
    stage: str
    attempt: int
    flushes: int


def canonical_key(item: Any) -> str:
    """A key that is equal for equal items, whatever the order of their fields or the process.

    The leading `1:` is the version of this encoding: changing the encoding without changing it would
    make every known job look new.
    """
    encoded = msgspec.json.encode(_canonical(item), order="deterministic")
    return "1:" + hashlib.blake2b(encoded, digest_size=16).hexdigest()


def bounded_key(key: str) -> str:
    """The key itself while it is short and can be stored; otherwise its beginning and a digest of it."""
    if len(key) <= KEY_LENGTH and "\x00" not in key and (key.isascii() or not _has_surrogates(key)):
        return key
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    start = key[: KEY_LENGTH - 33].encode("utf-8", "ignore").decode().replace("\x00", "")
    return f"{start}#{digest}"


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and not math.isinf(value):
        return int(value)
    if isinstance(value, dict):
        return {str(name): _canonical(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    return value
