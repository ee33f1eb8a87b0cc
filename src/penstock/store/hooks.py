"""The outbox: what the outside is to be told of runs that have ended, until it has accepted it.

A line is written in the transaction that ends the run, so it is there if and only if the run has ended. Who
is to be told stands in the database by name; where that is, and the secret that signs it, never does.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import Remedy, UsageError
from penstock.jobs.run import RunKind, RunState
from penstock.jobs.run_policy import policy_of
from penstock.journal.event import Event
from penstock.journal.service_events import HookDelivered, HookFailed, HookRedeliveryRequested
from penstock.store.database import LAST_ID, Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rows import CauseOfRun, RunRow

EVERY_SOURCE = 0
LONGEST_ERROR = 500
# The causes that most jobs of a run failed for.
MOST_ERRORS = 5


class Ended(msgspec.Struct, frozen=True, array_like=True):
    """A run that ends in this transaction."""

    run_id: int
    source_id: int
    state: RunState
    kind: RunKind
    reason: str = ""


class OutboxRow(msgspec.Struct, frozen=True):
    """Due while it has a `due_at`, accepted once it has a `delivered_at`; given up with neither."""

    id: int
    hook: str
    run_id: int
    source: str | None
    run_state: str
    created_at: float
    due_at: float | None
    attempts: int
    delivered_at: float | None
    error: str

    @property
    def state(self) -> str:
        if self.delivered_at is not None:
            return "delivered"
        if self.due_at is None:
            return "given up"
        return "failing" if self.error else "due"


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    """One line that is somebody's to send now."""

    id: int
    hook: str
    run_id: int
    state: str
    body: str
    attempts: int
    # The run's, for receivers that trace what they do with it.
    traceparent: str = ""


def tell_ends(db: Database, ledger: Ledger, ends: Sequence[Ended]) -> None:
    """Signal that these runs have ended, and put down who is to be told."""
    if not ends:
        return
    signals = [
        (f"run.{end.state}", to_json(_about(end)), end.source_id, end.run_id)
        for end in ends
        if policy_of(end.kind).signals_end
    ]
    if signals:
        db.do("add_signals", now=ledger.now, signals=to_json(signals))
    hooked = db.rows("hooks_of_ends", ends=to_json(ends))
    if hooked:
        ledger.write_runs()
        rows = {run_id: _run(db, run_id) for run_id in {run_id for _, run_id in hooked}}
        why = {end.run_id: end.reason for end in ends}
        bodies = {
            run_id: to_json(body_of(row, why[run_id], _errors(db, row)))
            for run_id, row in rows.items()
        }
        told = [(hook, run_id, rows[run_id].state, bodies[run_id]) for hook, run_id in hooked]
        db.do("add_outbox", now=ledger.now, told=to_json(told))


def _run(db: Database, run_id: int) -> RunRow:
    [row] = db.decoded("runs", list[RunRow], ids=to_json([run_id]))
    return row


def _about(end: Ended) -> dict[str, object]:
    return {"run": end.run_id, "kind": end.kind, "state": end.state, "reason": end.reason}


def _errors(db: Database, row: RunRow) -> list[CauseOfRun]:
    if not row.quarantined:
        return []
    about = {"run_id": row.id, "limit": MOST_ERRORS, "stage": None}
    return db.decoded("failures_by_cause", list[CauseOfRun], **about)


def body_of(row: RunRow, reason: str, errors: Sequence[CauseOfRun] = ()) -> dict[str, object]:
    """What the outside is told of a run; the reason is why it ended so, the errors why jobs of it failed."""
    return {
        "event": f"run.{row.state}",
        "run": row.id,
        "source": row.source,
        "kind": row.kind,
        "state": row.state,
        "reason": row.end_reason or reason,
        "started_by": row.actor,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "records": {
            "inserted": row.inserted,
            "updated": row.updated,
            "unchanged": row.unchanged,
            "rejected": row.rejected,
        },
        "jobs": {
            "succeeded": row.succeeded,
            "skipped": row.skipped,
            "quarantined": row.quarantined,
            "cancelled": row.cancelled,
        },
        "errors": [
            {
                "kind": each.kind,
                "cause": each.cause,
                "error": each.error[:LONGEST_ERROR],
                "jobs": each.jobs,
                "job": each.job_id,
            }
            for each in errors
        ],
    }


class Hooks(Noun):
    """The verbs of the outbox."""

    def plan(self, hooks: Sequence[tuple[str, str, int]]) -> None:
        """Who is told from now on: (hook, state that a run ends in, source), and nobody else."""
        with self._db.writing():
            rows = to_json(sorted(hooks))
            self._db.do("drop_other_hooks", hooks=rows)
            self._db.do("add_hooks", hooks=rows)

    def claim(self, limit: int, lease_s: float) -> list[Parcel]:
        """What is due to be sent, for this caller to send; it is due again after so long."""
        due_at = self._db.value("next_outbox_due")
        if due_at is None or due_at > self._db.now():
            return []
        with self._db.writing() as now:
            rows = self._db.rows("claim_outbox", now=now, until=now + lease_s, limit=limit)
            return [Parcel(*row) for row in sorted(rows)]

    def accept(self, parcel: Parcel, actor: str) -> None:
        """It was accepted, and is not sent again."""
        with self._db.writing() as now:
            if self._db.do("accept_outbox", id=parcel.id, now=now):
                event = HookDelivered(parcel.hook, parcel.id, parcel.attempts)
                self._tell(event, parcel.run_id, now, actor)

    def refuse(self, parcel: Parcel, error: str, retry_in_s: float | None, actor: str) -> None:
        """It was not accepted: it is due again so much later, or given up."""
        error = error[:LONGEST_ERROR]
        with self._db.writing() as now:
            due_at = None if retry_in_s is None else now + retry_in_s
            about = {"id": parcel.id, "attempts": parcel.attempts}
            is_ours = self._db.do("refuse_outbox", error=error, due_at=due_at, **about)
            if is_ours and retry_in_s is None:
                event = HookFailed(parcel.hook, parcel.id, parcel.attempts, error)
                self._tell(event, parcel.run_id, now, actor)

    def _tell(self, event: Event, run_id: int, now: float, actor: str) -> None:
        ledger = Ledger(self._db, now)
        # A message about alerts is about no run.
        ledger.journal(event, None, run_id or None, actor=actor)
        ledger.write()

    def retry(self, outbox_id: int, actor: str, reason: str) -> bool:
        """Send it again now, with fresh attempts; False if it was accepted already."""
        with self._db.writing() as now:
            found = self._db.rows("outbox_state", id=outbox_id)
            if not found:
                raise UsageError(
                    f"there is no delivery {outbox_id}",
                    code="no_delivery",
                    remedy=Remedy("hooks.list"),
                )
            is_delivered, run_id, hook = found[0]
            if is_delivered or not self._db.do("retry_outbox", id=outbox_id, now=now):
                return False
            self._tell(HookRedeliveryRequested(hook, outbox_id, reason), run_id, now, actor)
            return True

    def outbox(
        self, *, undelivered_only: bool = False, limit: int = 50, before_id: int | None = None
    ) -> list[OutboxRow]:
        """What was and is to be told, the newest first; with `before_id`, what is older than this one."""
        about = {"undelivered_only": undelivered_only, "limit": limit}
        about["before_id"] = LAST_ID if before_id is None else before_id
        return self._db.decoded("outbox", list[OutboxRow], **about)
