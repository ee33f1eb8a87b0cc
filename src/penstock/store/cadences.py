"""Cadences: the class of each source whose cadence is `auto`, and why it has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock.jobs.run import ENDED_RUN_STATES, RunState
from penstock.jobs.run_policy import policy_of
from penstock.journal.source_events import CadenceChanged, CadenceEvent, CadenceProposed
from penstock.schedules.auto import EndedRun, Level, Standing, level_before
from penstock.store.database import to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

RUNS_AT_ONCE = 2000


class CadenceRow(msgspec.Struct, frozen=True):
    """Where a source stands; `proposed` is the class that it would have if it were moved by itself."""

    source_id: int
    source: str
    level: Level
    before: str
    proposed: str
    reason: str
    steps: int
    last_run_id: int
    since: float

    @property
    def standing(self) -> Standing:
        return Standing(self.level, level_before(self.before), self.steps, self.last_run_id)


class CadenceMove(msgspec.Struct, frozen=True):
    """A change of a source's class: from what it was when it was looked at, to what, and why.

    `next_due` is the next tick of each of its schedules by the new class, `words` what it is called then.
    """

    was: Level
    standing: Standing
    reason: str
    next_due: Mapping[str, float | None]
    words: Mapping[str, str] = {}


class Cadences(Noun):
    """The verbs of cadences."""

    def all(self, source_id: int | None = None) -> list[CadenceRow]:
        return self._db.decoded("cadences", list[CadenceRow], source_id=source_id)

    def begin(self, cadences: Sequence[tuple[int, Level]]) -> None:
        """Give sources that have none yet a class."""
        if cadences:
            with self._db.writing() as now:
                self._db.do("begin_cadences", cadences=to_json(sorted(cadences)), now=now)

    def runs(self, places: Mapping[int, int]) -> dict[int, list[EndedRun]]:
        """By source: the runs behind the one that was last looked at, up to one that goes on."""
        if not places:
            return {}
        rows = self._db.json(
            "runs_for_cadence", places=to_json(sorted(places.items())), limit=RUNS_AT_ONCE
        )
        found: dict[int, list[EndedRun]] = {}
        waits: set[int] = set()
        for source_id, run_id, kind, state, changed, seen in rows:
            if state not in ENDED_RUN_STATES:
                waits.add(source_id)
            if source_id in waits or state == RunState.CANCELLED:
                continue
            is_good = state in (RunState.COMPLETED, RunState.PARTIAL)
            is_probe = policy_of(kind).is_probe
            ended = EndedRun(run_id, is_probe, is_good, changed, seen)
            found.setdefault(source_id, []).append(ended)
        return found

    def note(self, row: CadenceRow, standing: Standing) -> bool:
        """Remember what was said in a row; nothing is moved."""
        with self._db.writing() as now:
            return self._set_cadence(now, row.level, row, standing, row.proposed, row.reason)

    def propose(
        self,
        row: CadenceRow,
        standing: Standing,
        level: Level,
        reason: str,
        actor: str,
        words: Mapping[str, str] | None = None,
    ) -> bool:
        """Say what class a source would have; a person decides. False if it has another by now."""
        with self._db.writing() as now:
            if not self._set_cadence(now, row.level, row, standing, level, reason):
                return False
            self._say(row.source_id, words or {})
            self._tell_move(now, row.source_id, CadenceProposed(row.level, level, reason), actor)
            return True

    def move(self, row: CadenceRow, move: CadenceMove, actor: str) -> bool:
        """Give a source another class and its schedules the ticks of that; False if it has another now."""
        standing = move.standing
        with self._db.writing() as now:
            if not self._set_cadence(now, move.was, row, standing, "", move.reason):
                return False
            for name, due_at in sorted(move.next_due.items()):
                where = {"source_id": row.source_id, "schedule": name}
                self._db.do("replan", next_due_at=due_at, **where)
            self._say(row.source_id, move.words)
            event = CadenceChanged(move.was, standing.level, move.reason)
            self._tell_move(now, row.source_id, event, actor)
            return True

    def _say(self, source_id: int, words: Mapping[str, str]) -> None:
        said = [(source_id, name, text) for name, text in sorted(words.items())]
        self._db.do("say_schedules", schedules=to_json(said))

    def _set_cadence(
        self,
        now: float,
        was: Level,
        row: CadenceRow,
        standing: Standing,
        proposed: str,
        reason: str,
    ) -> bool:
        changed = self._db.do(
            "set_cadence_if",
            source_id=row.source_id,
            was=was,
            level=standing.level,
            before=standing.before,
            proposed=proposed,
            reason=reason,
            steps=standing.steps,
            last_run_id=standing.last_run_id,
            now=now,
        )
        return bool(changed)

    def _tell_move(self, now: float, source_id: int, event: CadenceEvent, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, source_id, actor=actor)
        ledger.write()
