"""Rows of breakers: read, locked in the order of their keys, and written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.gates.breaker import Breaker
from penstock.journal.source_events import (
    BreakerClosed,
    BreakerEvent,
    BreakerHalfOpen,
    BreakerOpened,
)
from penstock.settings.values import BreakerSettings
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

SOURCE, HOST = "source:", "host:"
# For hosts that have no numbers of their own.
HOST_RULE = BreakerSettings()
REASON_LENGTH = 300


class BreakerRow(msgspec.Struct, frozen=True):
    """A breaker as it is seen at one moment; what is open and whose time has come is half-open."""

    key: str
    state: str
    since: float
    opens_at: float
    opened_at: float
    counts_until: float
    trips: int
    ramp: int
    buckets: list[tuple[int, int, int]]
    reason: str

    @property
    def kind(self) -> str:
        return self.key.partition(":")[0]

    @property
    def name(self) -> str:
        return self.key.partition(":")[2]


def locked_breakers(db: Database, now: float, keys: Iterable[str]) -> dict[str, Breaker]:
    """These breakers, as they stay until the transaction ends; a new one is closed."""
    wanted = sorted(set(keys))
    present = set(db.json("present_breakers", keys=to_json(wanted)))
    found = found_breakers(db, wanted) if present.issuperset(wanted) else {}
    for key in wanted:
        # One by one: what is new is locked as it is added, and must not be before what comes first.
        if key not in found:
            found |= found_breakers(db, [key]) if key in present else {}
        if key not in found:
            db.do("add_breaker", key=key, now=now)
            found |= found_breakers(db, [key])
    return found


def found_breakers(db: Database, keys: Sequence[str]) -> dict[str, Breaker]:
    rows = db.json("lock_breakers", keys=to_json(keys))
    return {key: _breaker(*row) for key, row in rows.items()}


def _breaker(
    state: Any,
    since: float,
    opens_at: float,
    opened_at: float,
    counts_until: float,
    trips: int,
    ramp: int,
    buckets: list[tuple[int, int, int]],
    reason: str,
    trying: int,
    trying_until: float,
    in_a_row: int,
) -> Breaker:
    parts = tuple((part, ok, failed) for part, ok, failed in buckets)
    about = (opened_at, counts_until, trips, ramp, parts, reason, trying, trying_until, in_a_row)
    return Breaker(state, since, opens_at, *about)


def write_breakers(
    db: Database,
    ledger: Ledger,
    before: Mapping[str, Breaker],
    after: Mapping[str, Breaker],
    owners: Mapping[str, tuple[int, int]],
    actor: str = "",
) -> None:
    """Write what has changed; a change of state is an event, and the end of an outage a signal."""
    changed = [(key, each) for key, each in sorted(after.items()) if each != before[key]]
    if not changed:
        return
    db.do("set_breakers", breakers=to_json([_row(key, each) for key, each in changed]))
    signals = []
    for key, each in changed:
        was = before[key]
        is_put_off = each.state == "open" and was.state != "closed" and each.trips == was.trips
        if (each.state, each.since) == (was.state, was.since) or (is_put_off and not actor):
            continue
        source_id, run_id = owners.get(key, (None, 0))
        event = _event(key, was, each, ledger.now)
        ledger.journal(event, source_id, actor=actor)
        if each.state == "closed" and source_id is not None:
            data = missed_window(key.removeprefix(SOURCE), was.opened_at, ledger.now)
            signals.append((event.kind, to_json(data), source_id, run_id))
    if signals:
        db.do("add_signals", now=ledger.now, signals=to_json(signals))


def _row(key: str, each: Breaker) -> tuple[object, ...]:
    return (
        *(key, each.state, each.since, each.opens_at, each.opened_at, each.counts_until),
        *(each.trips, each.ramp, to_json(each.buckets), each.reason[: 2 * REASON_LENGTH]),
        *(each.trying, each.trying_until, each.in_a_row),
    )


def _event(key: str, was: Breaker, each: Breaker, now: float) -> BreakerEvent:
    host = key.removeprefix(HOST) if key.startswith(HOST) else ""
    if each.state == "open":
        return BreakerOpened(host, each.reason, round(each.opens_at - now, 3))
    if each.state == "half-open":
        return BreakerHalfOpen(host, round(now - was.since, 3))
    return BreakerClosed(host, each.reason, round(now - was.opened_at, 3))


def missed_window(source: str, start_at: float, end_at: float) -> dict[str, object]:
    """What the signal `breaker.closed` says: in this stretch of time nothing was fetched from the source."""
    return {"source": source, "start_at": start_at, "end_at": end_at}


def chance_of(key: str, now: float) -> float:
    """A number between 0 and 1 that is another for everyone, and the same when all is done again."""
    digest = hashlib.blake2b(f"{key} {now!r}".encode(), digest_size=6).digest()
    return int.from_bytes(digest) / 2.0**48
