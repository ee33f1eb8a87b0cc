"""The audit of the journal: seals over its rows, and their retention.

Rows are sealed by whoever leads, in batches, outside of every turn. What is sealed can't gain a row any more:
on a server ids become visible out of order, so a batch ends where nobody who was writing is still under way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf

import msgspec

from penstock.audit.chain import Seal, next_seal
from penstock.audit.line import Line, in_seconds
from penstock.audit.verification import Act, Tombstone
from penstock.store.database import LAST_ID, Database
from penstock.store.history import Marks
from penstock.store.journal_position import read_position
from penstock.store.journal_rows import BESIDE_S
from penstock.store.noun import Noun
from penstock.store.schema import JOURNAL_HAS_DATA

# How many rows a seal covers at most, and after how long fewer are sealed.
SEAL_ROWS = 2000
SEAL_AFTER_S = 60.0
# How many seals one piece of retention looks at. Where it is small, the first must be overdue by so much:
# each piece leaves a seal of its own, which stays for ever.
PRUNED_SEALS = 500
PRUNE_AFTER_S = 3600.0
# How long a person's command waits for those who are writing.
WAIT_S, LOOK_S = 5.0, 0.05


class Audit(Noun):
    """The verbs of seals."""

    def __init__(self, db: Database, marks: Marks) -> None:
        super().__init__(db)
        self._marks = marks

    def seal_if_due(self) -> int:
        """Seal one batch if it is full, or if its first row waits for long; answers how many rows."""
        end = settled_end(self._db, self._marks)
        lines = _unsealed(self._db, end, SEAL_ROWS)
        if not lines or (len(lines) < SEAL_ROWS and self._db.now() - lines[0].at < SEAL_AFTER_S):
            return 0
        return _seal(self._db, lines)

    def seal_all(self, wait_s: float = WAIT_S, most: int = LAST_ID) -> int:
        """Seal everything that is there, as far as those who are writing end soon; how many rows."""
        until = self._db.monotonic() + wait_s
        wanted, sealed = int(self._db.value("journal_last_id")), 0
        while True:
            end = settled_end(self._db, self._marks)
            while sealed < most and (lines := _unsealed(self._db, end, SEAL_ROWS)):
                sealed += _seal(self._db, lines)
            if end >= wanted or sealed >= most or self._db.monotonic() >= until:
                return sealed
            time.sleep(LOOK_S)

    def last(self) -> Seal | None:
        """The newest seal: the head of the chain."""
        return last_seal(self._db)

    def send_head_if_due(self, hook: str, body: str, every_s: float) -> bool:
        """Put a head into the outbox for this hook, unless one of the last `every_s` is there."""
        with self._db.writing() as now:
            since = now - every_s
            return bool(self._db.do("send_head_if_due", hook=hook, body=body, now=now, since=since))

    def unsealed(self, most: int = LAST_ID) -> int:
        """How many rows come behind the last seal; so many are counted."""
        return int(self._db.value("unsealed_events", most=most))

    def walk(self) -> Iterator[tuple[Seal, list[Line]]]:
        """Each seal with the rows that are there of what it covers, in the order of the chain."""
        # Nobody writes an id below 1 but whoever adds a row behind our back.
        after, last_id = 0, -LAST_ID
        while True:
            # One moment for both: retention must not drop rows between the seal and them.
            with self._db.at_one_moment():
                found = _seals(self._db, after)
                if found is None:
                    return
                about = {"after_id": last_id, "until_id": found.last_id, "limit": LAST_ID}
                lines = self._db.decoded("lines_to_seal", list[Line], **about)
            yield found, in_seconds(lines)
            after, last_id = found.number, max(last_id, found.last_id)

    def tail(self) -> list[Line]:
        """The rows behind the last seal."""
        return _unsealed(self._db, LAST_ID, LAST_ID)

    def tombstones(self) -> list[Tombstone]:
        """Rows out of which data was erased."""
        return [Tombstone(*row) for row in self._db.rows("tombstones")]

    def acts(self) -> list[Act]:
        """The events that tell of erasures."""
        return [Act(*row) for row in self._db.json("acts_of_erasure")]


def last_seal(db: Database) -> Seal | None:
    rows = db.rows("last_seal")
    return Seal(*rows[0]) if rows else None


def _seals(db: Database, after: int) -> Seal | None:
    rows = db.rows("seals", after=after, limit=1)
    return Seal(*rows[0]) if rows else None


def settled_end(db: Database, marks: Marks) -> int:
    """A position of the journal that can't gain a row before it any more; it grows from look to look.

    Whoever writes a row has locked the table when the row's id is drawn. So when all who held that lock at
    the moment of an end have let go, every row up to it is there.
    """
    last_id = int(db.value("journal_last_id"))
    writers = frozenset(row[0] for row in db.rows("journal_writers"))
    end, writing_then = marks.journal_end
    if not writers:
        marks.settled_end, marks.journal_end = last_id, (last_id, writers)
    elif not writing_then & writers:
        marks.settled_end, marks.journal_end = end, (last_id, writers)
    return marks.settled_end


def _unsealed(db: Database, end: int, limit: int) -> list[Line]:
    """The next rows that may be sealed, up to this position.

    Sentences of an older version are turned into data first.
    """
    head = last_seal(db)
    about = {"after_id": head.last_id if head else 0, "until_id": end, "limit": limit}
    lines = in_seconds(db.decoded("lines_to_seal", list[Line], **about))
    if all(not line.detail for line in lines):
        return lines
    until = float(db.value("journal_data_since", number=JOURNAL_HAS_DATA) or -inf) + BESIDE_S
    return list(takewhile(lambda line: not line.detail or line.at > until, lines))


def _seal(db: Database, lines: Sequence[Line]) -> int:
    """Seal these rows, if nobody else has since they were read; answers how many."""
    erasure = int(db.value("last_erasure"))
    head = last_seal(db)
    if head is not None and head.last_id >= lines[0].id:
        return 0
    seal = next_seal(head, lines, lines[-1].id, db.now())
    with db.writing():
        db.do("lock_seals")
        return len(lines) if add_seal(db, seal, erasure) else 0


def add_seal(db: Database, seal: Seal, erasure: int) -> bool:
    said = {
        name: value for name, value in msgspec.structs.asdict(seal).items() if name != "pruned_at"
    }
    return bool(db.do("add_seal_if_next", erasure=erasure, **said))


def prune_events(
    db: Database, marks: Marks, before: float, limit: int, overdue_s: float = 0.0
) -> int:
    """Drop lines of the journal that were written before then; 0 when none is left.

    Whole seals go, the oldest first, and a new seal says so. What was not sealed yet is sealed before it
    goes. With `overdue_s`, little is left until it is overdue by so much.
    """
    _seal_old(db, marks, before, limit)
    with db.writing() as now:
        db.do("lock_seals")
        due = _prunable(db, before, limit)
        rows = sum(events for _, _, events, _ in due)
        if not rows or (rows < limit and due[0][3] > before - overdue_s):
            return 0
        first, last, last_id = due[0][0], due[-1][0], due[-1][1]
        after_id = int(db.value("last_id_before_seal", number=first))
        db.do("drop_sealed_events", after_id=after_id, last_id=last_id)
        db.do("note_pruned", first=first, last=last, now=now)
        db.do("drop_tombstones", last_id=last_id)
        head = last_seal(db)
        erasure = int(db.value("last_erasure"))
        add_seal(db, next_seal(head, [], head.last_id if head else 0, now, last), erasure)
    return rows


def _seal_old(db: Database, marks: Marks, before: float, limit: int) -> None:
    lines = _unsealed(db, settled_end(db, marks), limit)
    old = list(takewhile(lambda line: line.at < before, lines))
    if old:
        _seal(db, old)


def _prunable(db: Database, before: float, limit: int) -> list[tuple[int, int, int, float]]:
    """The oldest seals whose rows are all old, and in the sums: (number, last id, events, newest)."""
    until_id = read_position(db).whole_until
    due, rows = [], 0
    for number, last_id, events, newest_at in db.rows("kept_seals", limit=PRUNED_SEALS):
        if newest_at >= before or rows >= limit or last_id > until_id:
            break
        due.append((number, last_id, events, newest_at))
        rows += events
    return due
