"""Sources: which there are, what holds each back, how well it is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import Remedy, UsageError, nearest
from penstock.journal.event import Event, Reasoned
from penstock.journal.source_events import (
    ProjectHeld,
    ProjectUnheld,
    SourceHeld,
    SourcePaused,
    SourceRecovered,
    SourceResumed,
    SourceUnheld,
)
from penstock.store.coverage import CoveredRow
from penstock.store.database import Database, bounded_text, to_json
from penstock.store.health import HealthRow
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.record_rows import NAME_BYTES
from penstock.store.rows import HoldRow, SourceRow

# The scope of a hold of everything; any other is a source's key.
WHOLE_PROJECT = ""


class Sources(Noun):
    """The verbs of sources. A hold is a gate and not a state: nothing has to be put back."""

    def ensure(self, keys: Sequence[str]) -> dict[str, int]:
        """Make every source known; answers with the id of each."""
        known: dict[str, int] = self._db.json("source_ids")
        if any(key not in known for key in keys):
            with self._db.writing() as now:
                self._db.do("add_sources", keys=to_json(sorted(keys)), now=now)
            known = self._db.json("source_ids")
        return {key: known[key] for key in keys}

    def all(self) -> list[SourceRow]:
        return self._db.decoded("sources", list[SourceRow], key=None)

    def get(self, key: str) -> SourceRow | None:
        """One of them: with a thousand others, that takes a tenth of the time of all."""
        return next(iter(self._db.decoded("sources", list[SourceRow], key=key)), None)

    def ids(self) -> dict[str, int]:
        """The number of each, by its key."""
        found: dict[str, int] = self._db.json("source_ids")
        return found

    def pause(self, source_id: int, actor: str, reason: str) -> bool:
        """Start nothing more of this source until it is resumed; what runs goes on."""
        return self._steer("pause_source_if_running", SourcePaused(reason), source_id, actor)

    def resume(self, source_id: int, actor: str, reason: str) -> bool:
        return self._steer("resume_source_if_paused", SourceResumed(reason), source_id, actor)

    def _steer(self, query: str, event: Reasoned, source_id: int, actor: str) -> bool:
        with self._db.writing() as now:
            values = {"id": source_id, "now": now, "reason": event.reason}
            if not self._db.do(query, **values):
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(event, source_id, actor=actor)
            ledger.write()
            return True

    def hold(self, scope: str, actor: str, reason: str) -> bool:
        """Start nothing of a source, or of anything ('' ), until it is unheld; False if it is held.

        What runs goes on; new work is accepted, and waits.
        """
        with self._db.writing() as now:
            source_id, lanes = self._scope(scope)
            # A claim that has looked already is waited for: what starts after this was not there.
            self._db.lock_lanes(lanes)
            if not self._db.do("add_hold", scope=scope, now=now, actor=actor, reason=reason):
                return False
            event = SourceHeld(reason) if scope != WHOLE_PROJECT else ProjectHeld(reason)
            self._tell_hold(event, source_id, now, actor)
            return True

    def unhold(self, scope: str, actor: str, reason: str) -> bool:
        """Let go on what was held under this very scope; False if it was not."""
        with self._db.writing() as now:
            source_id, _ = self._scope(scope)
            if not self._db.do("drop_hold", scope=scope):
                return False
            event = SourceUnheld(reason) if scope != WHOLE_PROJECT else ProjectUnheld(reason)
            self._tell_hold(event, source_id, now, actor)
            return True

    def _scope(self, scope: str) -> tuple[int | None, list[int]]:
        known: dict[str, int] = self._db.json("source_ids")
        if scope == WHOLE_PROJECT:
            return None, sorted(known.values())
        if scope not in known:
            raise UsageError(
                f"there is no source {scope!r}", code="no_source", remedy=Remedy("sources.list")
            )
        return known[scope], [known[scope]]

    def _tell_hold(self, event: Event, source_id: int | None, now: float, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, source_id, actor=actor)
        ledger.write()

    def holds(self) -> list[HoldRow]:
        """What is held, since when, by whom and why."""
        return self._db.decoded("holds", list[HoldRow])

    def health(self, source_id: int) -> HealthRow:
        found = self._db.json("health", source_id=source_id)
        return HealthRow() if found is None else msgspec.convert(found, HealthRow)

    def recover(self, source_id: int, actor: str, reason: str) -> bool:
        """Take a degraded source for healthy, because somebody says so; False if it is not degraded."""
        with self._db.writing() as now:
            if not self._db.do("clear_if_degraded", source_id=source_id):
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(SourceRecovered(reason), source_id, actor=actor)
            ledger.write()
            return True

    def covered(
        self, source_id: int, partitions: Sequence[str], start_at: float, end_at: float
    ) -> list[CoveredRow]:
        """What is ingested of a stretch of time, by partition and start; it may overlap."""
        names = {bounded_text(name, NAME_BYTES): name for name in partitions}
        span = {"start_at": start_at, "end_at": end_at}
        found = self._db.decoded(
            "covered",
            list[CoveredRow],
            source_id=source_id,
            partitions=to_json(list(names)),
            **span,
        )
        return [CoveredRow(names[c.partition], c.start_at, c.end_at, c.run_id) for c in found]


def source_id_of(db: Database, key: str | None) -> int | None:
    if key is None:
        return None
    found = db.value("source_id", key=key)
    if found is None:
        raise UsageError(f"there is no source {key!r}", nearest(key, db.json("source_ids")))
    return int(found)
