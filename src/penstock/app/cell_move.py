"""Moving a source from one cell's database to another's, so that exactly one of them has it at any time.

    origin   here ──────── leaving ────────────────────── left
    target                          arriving ─────────────────── here
                           (drain)  (copy, verify)  ▲
                                                    one commit: from here on it is the target's

While the origin says `leaving` the source is the origin's, stopped; the commit that says `left` compares what
was copied with what is there, drops it, and gives the source away. Killed anywhere, the same command goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.counting import count
from penstock.errors import Refused, Remedy, StoreError
from penstock.gates.onboarding import SourceState, is_here
from penstock.journal.cell_events import (
    SourceArrived,
    SourceLeaving,
    SourceLeft,
    SourcePlaced,
    SourceStayed,
)
from penstock.journal.event import Event
from penstock.snapshots import SegmentPlace, open_snapshots
from penstock.store.cells import NOTHING_SAID, CellRow

if TYPE_CHECKING:
    from penstock.app.project import Project
    from penstock.store.copy_progress import Row
    from penstock.store.postgres.source_rows import Digest, Digests, SourceRows
    from penstock.store.store import Store
    from penstock.store.tables import Table

LOOK_S = 0.2
# A source whose rows change while it moves is copied again, so many times.
COPIES = 5
PAYLOADS = 200

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two cells of a move, and what it says of the source."""

    name: str
    project: Project
    is_placed_only: bool
    row: CellRow

    @property
    def is_here(self) -> bool:
        return is_here(self.row.state or None, is_placed_only=self.is_placed_only)

    @property
    def store(self) -> Store:
        return self.project.connection

    def again(self, key: str) -> Side:
        """The same as it is now."""
        row = self.store.cells.state(key)
        return Side(self.name, self.project, self.is_placed_only, row)


@dataclass(frozen=True, slots=True)
class Act:
    """Who moves what, and why."""

    key: str
    actor: str
    reason: str
    begins: SourceState
    drain_s: float
    tell: Tell


def place(origin: Side, target: Side, act: Act) -> None:
    """Give a source that has nothing yet to another cell: the decisive commit is the origin's."""
    move(origin, target, act, placed=True)


def move(origin: Side, target: Side, act: Act, *, placed: bool = False) -> None:
    """Move the source, or go on with a move that was cut off, until the target has it."""
    if origin.row.state == "left" and origin.row.cell == target.name:
        _arrive(origin, target, act, placed=placed)
        return
    token = os.urandom(8).hex()
    origin = _leave(origin, target, act, token, placed=placed)
    _drain(origin, act)
    target = _claim(target, origin, act, token)
    for _ in range(COPIES):
        digests = _copy(origin, target, act, token)
        if digests is not None and _give(origin, target, act, token, digests, placed=placed):
            _arrive(origin, target, act, placed=placed)
            return
        act.tell(f"{act.key} has changed meanwhile; copying it again")
    raise Refused(
        f"{act.key} changed again and again while it was copied",
        "stop what changes it, then move it again; until then it stays where it was, stopped",
        code="source_changing",
    )


def call_off(origin: Side, target: Side | None, act: Act) -> None:
    """Let a source that was to leave stay. What had arrived of it in the target is dropped first.

    Before that, the hand-over is ours: whoever moves it at this moment can't give it away any more.
    """
    ours = CellRow("leaving", origin.row.cell, os.urandom(8).hex(), 0.0)
    _change(origin, act, origin.row, ours, None)
    origin = origin.again(act.key)
    if target is not None and target.row.state == "arriving":
        there = target.store.source_rows(act.key)
        with there.writing() as now:
            if target.store.cells.state(act.key).state == "arriving":
                there.clear()
                # Not without a word: in `main`, a source that nothing is said of is there.
                made = CellRow("left", origin.name, "", 0.0)
                there.say(now, NOTHING_SAID, made, act.begins, None, act.actor)
    made = CellRow("here", "", "", 0.0)
    event = SourceStayed(act.reason, origin.row.cell)
    _change(origin, act, origin.row, made, event)


def _leave(origin: Side, target: Side, act: Act, token: str, *, placed: bool) -> Side:
    """Stop the source where it is. Of two that move it, the later one goes on."""
    made = CellRow("leaving", target.name, token, 0.0)
    event = (
        None if placed or origin.row.state == "leaving" else SourceLeaving(act.reason, target.name)
    )
    _change(origin, act, origin.row, made, event)
    return origin.again(act.key)


def _change(side: Side, act: Act, seen: CellRow, made: CellRow, event: Event | None) -> None:
    source_id = side.store.sources.ensure([act.key])[act.key]
    if not side.store.cells.change(source_id, seen, made, act.begins, event, act.actor):
        raise _overtaken(act.key)


def _drain(origin: Side, act: Act) -> None:
    """Wait for what runs; nothing more starts."""
    store = origin.project.connection
    source_id = store.sources.ensure([act.key])[act.key]
    until, told = time.monotonic() + act.drain_s, -1
    while running := store.cells.running(source_id):
        if running != told:
            act.tell(f"waiting for {count(running, 'running job')} of {act.key}")
            told = running
        if time.monotonic() >= until:
            raise Refused(
                f"{count(running, 'job')} of {act.key} still running in {origin.name} "
                f"after {act.drain_s:g} s",
                "move it again to go on waiting, or move it to the cell where it is to call this off",
                code="source_running",
            )
        time.sleep(LOOK_S)


def _claim(target: Side, origin: Side, act: Act, token: str) -> Side:
    """Note in the target whose copy comes: one that began earlier can't write there any more."""
    if target.is_here:
        raise StoreError(
            f"{act.key} is in both {origin.name} and {target.name}",
            "put one of the two databases back from a backup",
            code="two_owners",
        )
    made = CellRow("arriving", origin.name, token, 0.0)
    _change(target, act, target.row, made, None)
    return target.again(act.key)


def _copy(origin: Side, target: Side, act: Act, token: str) -> Digests | None:
    """Put everything of the source into the target; answers what it was, None if something runs again.

    What is in the target of an earlier copy goes in the same transaction.
    """
    from penstock.store.postgres.source_rows import (
        MOVED_TABLES,
        SHARED_TABLES,
        Digest,
        counted,
        translated,
    )

    while origin.store.rollups.fold():
        pass
    target.store.sources.ensure(list(origin.store.sources.ids()))
    _copy_payloads(origin, target, act)
    act.tell(f"copying {act.key}")
    here, there = origin.store.source_rows(act.key), target.store.source_rows(act.key)
    theirs = there.sources()
    numbers = {number: theirs[key] for key, number in here.sources().items()}
    mark = {"cell_state": "arriving", "cell": origin.name, "cell_token": token}
    sent: dict[str, Digest] = {}

    def made(table: Table) -> tuple[Table, Iterator[Row]]:
        about = mark if table.name == "onboarding" else {}
        rows = translated(table, here.rows(table), numbers, **about)
        return table, counted(rows, sent.setdefault(table.name, Digest()))

    with here.reading():
        if origin.store.cells.running(here.id):
            return None
        wanted = here.digest()
        with there.writing():
            if target.store.cells.state(act.key).token != token:
                raise _overtaken(act.key)
            there.put(map(made, MOVED_TABLES), map(made, SHARED_TABLES), here.standing())
            _verify(there, sent, target.name)
    return wanted


def _verify(there: SourceRows, sent: Mapping[str, Digest], cell: str) -> None:
    """The target has, row for row, what was sent, and a raw payload for each page."""
    found = there.digest()
    wrong = [name for name in found if name in sent and found[name] != sent[name].value]
    if wrong:
        raise StoreError(
            f"what was copied to {cell} is not what was there: {', '.join(wrong)}",
            "move it again",
            code="copy_differs",
        )
    if missing := there.missing_payloads():
        raise StoreError(
            f"{count(missing, 'page')} of {there.key} without a raw payload in {cell}",
            "move it again; if that does not help, check the database that it comes from",
            code="copy_differs",
        )


def _give(
    origin: Side, target: Side, act: Act, token: str, digests: Digests, *, placed: bool
) -> bool:
    """The one commit that gives the source away, if it is still what was copied; with its rows gone."""
    here = origin.store.source_rows(act.key)
    with here.writing() as now:
        seen = origin.store.cells.state(act.key)
        if (seen.state, seen.token) != ("leaving", token):
            raise _overtaken(act.key)
        if here.digest() != digests:
            return False
        here.clear()
        rows = sum(each for each, _ in digests.values())
        left = SourceLeft(act.reason, target.name, rows)
        event = SourcePlaced(act.reason, target.name) if placed else left
        made = CellRow("left", target.name, "", 0.0)
        return here.say(now, NOTHING_SAID, made, SourceState.ACTIVE, event, act.actor)


def _arrive(origin: Side, target: Side, act: Act, *, placed: bool) -> None:
    """Let the target perform it: it is the target's already."""
    target = target.again(act.key)
    if target.is_here:
        return
    made = CellRow("here", "", "", 0.0)
    event = (
        SourcePlaced(act.reason, target.name) if placed else SourceArrived(act.reason, origin.name)
    )
    source_id = target.store.sources.ensure([act.key])[act.key]
    about = (source_id, target.row, made, act.begins, event, act.actor)
    if not target.store.cells.change(*about) and not target.again(act.key).is_here:
        raise _overtaken(act.key)


def _copy_payloads(origin: Side, target: Side, act: Act) -> None:
    """Store in the target's own place what the source's pages were, where it is not there yet."""
    here = origin.store.source_rows(act.key)
    if not here.places("", 1):
        return
    reader = open_snapshots(origin.project.settings.snapshots, "cells")
    writer = open_snapshots(target.project.settings.snapshots, f"cells-{os.getpid()}")
    after, done = "", 0
    with closing(reader), closing(writer):
        while found := here.places(after, PAYLOADS):
            after = found[-1][0]
            known = target.store.snapshots.places([each[0] for each in found])
            missing = [each for each in found if each[0] not in known]
            places = writer.append([reader.read(SegmentPlace(*each)) for each in missing])
            writer.sync()
            target.store.snapshots.add_payloads(
                [(each.hash, each.segment, each.offset, each.length) for each in places]
            )
            done += len(missing)
            act.tell(f"copied {count(done, 'raw payload')} of {act.key}")


def _overtaken(key: str) -> Refused:
    return Refused(
        f"somebody else moves {key} at this moment",
        "let it finish, then look where it is",
        code="move_in_progress",
        remedy=Remedy("cells.get", key),
    )
