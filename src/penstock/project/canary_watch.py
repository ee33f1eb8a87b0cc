"""The watch over canaries: looks at their guardrails when they are due, and rolls back what harms.

Each step is written before the next one begins and can be taken again, so another leader goes on where one
died.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from penstock.alerts.rules import is_at_least
from penstock.counting import count
from penstock.jobs.canary.guardrails import judge, look_due
from penstock.jobs.replay import replay_plan
from penstock.jobs.run import RunKind, RunOptions, Share
from penstock.journal.run_events import RunUndone
from penstock.store.canaries import CanaryRow, CanaryRun, grouped
from penstock.store.checkpoints import CheckpointMove
from penstock.store.promises import LEADER
from penstock.store.store import Store

if TYPE_CHECKING:
    from penstock.project import Project

# Fewer saved records than this say nothing of a difference.
MIN_RECORDS = 50


class CanaryWatch:
    """What is done for all canaries that are open."""

    def __init__(
        self, project: Project, store: Store, may_go_on: Callable[[], bool] = lambda: True
    ) -> None:
        self._project = project
        self._store = store
        self._may_go_on = may_go_on

    def look(self) -> None:
        for canary in self._store.canaries.open():
            if not self._may_go_on():
                return
            if canary.state == "stopping":
                self._roll_back(canary)
            elif (reason := self._harm(canary)) is not None:
                self._store.canaries.stop(canary.id, canary.state, LEADER, reason)

    def _harm(self, canary: CanaryRow) -> str | None:
        """Why it must be stopped; None while it need not be."""
        for alert in self._store.canaries.alerts(canary):
            least = canary.limits.alerts
            if least != "none" and is_at_least(alert.severity, least):
                return f"alert {alert.id} ({alert.rule}) opened on {alert.source}"
        if canary.state != "active":
            self._drop_controls(canary)
            return None
        pages = self._store.canaries.pages(canary.id)
        is_paired = canary.share == "sources"
        done = min(pages.values()) if is_paired else pages["canary"]
        if not look_due(done, canary.looks, canary.limits.min_pages):
            return None
        look = judge(self._store.canaries.samples(canary), canary.limits, canary.looks + 1)
        if not look.has_enough:
            return None
        look = msgspec.structs.replace(look, diff=self._difference(canary))
        if not self._store.canaries.note_look(canary.id, look):
            return None
        if look.crossed or look.diff_is_crossed(canary.limits):
            return look.words(canary.limits)
        if look.canary_pages >= canary.limits.pages:
            self._store.canaries.has_passed(
                canary.id, f"{count(look.canary_pages, 'page')}, no limit crossed"
            )
        return None

    def _difference(self, canary: CanaryRow) -> float | None:
        """The share of records that are different because of the release; None before there are enough.

        Of pages, what it wrote anew or changed, beyond the share that the control did. Of sources, the
        records that the control, on the same pages, would have otherwise.
        """
        runs = self._store.canaries.runs(canary.id)
        if canary.share == "sources":
            controls = [run for run in runs if run.arm == "control" and run.is_ended]
            saved = sum(run.saved for run in controls)
            if saved < MIN_RECORDS:
                return None
            for run in controls:
                self._seal(run)
            removed = sum(self._store.canaries.removals(run.id) for run in controls)
            return min(1.0, (sum(map(_changed, controls)) + removed) / (saved + removed))
        shares = []
        for arm in ("canary", "control"):
            mine = [run for run in runs if run.arm == arm]
            saved = sum(run.saved for run in mine)
            if saved < MIN_RECORDS:
                return None
            shares.append(sum(map(_changed, mine)) / saved)
        return max(0.0, shares[0] - shares[1])

    def _drop_controls(self, canary: CanaryRow) -> None:
        """What the control has staged was there to be compared with."""
        drop_controls(self._store, canary.id, LEADER)

    def _seal(self, run: CanaryRun) -> None:
        while self._store.replays.seal(run.id):
            pass

    def _roll_back(self, canary: CanaryRow) -> None:
        """Cancel what goes on, undo what was saved, and have the project's own files do what it had left."""
        runs = self._store.canaries.runs(canary.id)
        for run in runs:
            is_its = run.arm == "canary" or run.kind == RunKind.REPLAY
            if is_its and not run.is_ended:
                self._store.runs.cancel(run.id, LEADER, f"canary {canary.id} is stopped")
        while self._store.runs.sweep_cancelled():
            pass
        by_it = [run for run in runs if run.arm == "canary"]
        for run in reversed(by_it):
            if not self._may_go_on():
                return
            self._undo(run.id, f"canary {canary.id} is rolled back")
        undone = sum(self._store.undos.was_undone(run.id) for run in by_it)
        live = {run.id for run in by_it if run.kind != RunKind.BACKFILL}
        for source_id in sorted({run.source_id for run in by_it if run.id in live}):
            self._rewind(source_id, live, f"canary {canary.id} is rolled back")
        self._drop_controls(canary)
        started = sum(self._catch_up(canary, mine) for mine in grouped(runs).values())
        if self._store.canaries.rolled_back(canary.id, undone, started):
            self._store.canaries.forget_samples(canary.id)

    def _rewind(self, source_id: int, runs: set[int], reason: str) -> None:
        """Put checkpoints back to where they were before the first of these runs moved them."""
        for row in self._store.checkpoints.all(source_id):
            history = self._store.checkpoints.history(source_id, row.partition)
            moved = [at for at, move in enumerate(history) if _is_by(move, runs)]
            rewound = [at for at, move in enumerate(history) if move.act == "rewound"]
            if not moved or (rewound and rewound[0] < moved[0]):
                continue
            older = [move for move in history[moved[-1] + 1 :] if move.act != "refused"]
            before = (
                older[0] if older else CheckpointMove(0, None, None, row.run_id, 0.0, "", "rewound")
            )
            self._store.checkpoints.rewind(
                source_id, row.partition, before, actor=LEADER, reason=reason, is_forced=True
            )

    def _undo(self, run_id: int, reason: str) -> None:
        """Bring records back to what they were before a run."""
        undos = self._store.undos
        if not undos.is_undoing(run_id) and not undos.changes(run_id, 0, 1):
            return
        undo_id = undos.begin(run_id, LEADER, reason)
        after_id: int | None = 0
        while after_id is not None:
            after_id = undos.undo(run_id, undo_id, after_id).last_id
        done = self._store.replays.state(undo_id)
        later = undos.changed_since(run_id, 1).count
        undos.end(
            run_id,
            LEADER,
            RunUndone(undo_id, done.changed, done.added, done.removed, later, reason),
        )

    def _catch_up(self, canary: CanaryRow, runs: list[CanaryRun]) -> int:
        """A run of the source by the project's own files, of what the canary's newest run there was about."""
        of_canary = [run for run in runs if run.arm == "canary"]
        if not of_canary:
            return 0
        newest = of_canary[-1]
        key = f"canary:{canary.id}:rolled back"
        reason = f"{newest.id} is undone: canary {canary.id} is rolled back"
        if newest.kind == RunKind.BACKFILL and newest.of_run_id is not None:
            share = Share(canary.percent, canary.salt)
            plan = replay_plan(self._store.runs.plan(newest.of_run_id))
            live = self._store.runs.get(newest.of_run_id)
            options = RunOptions(takes=share, params=live.options.params if live else {})
            version = live.pipeline_version if live else ""
            about = (newest.source_id, RunKind.BACKFILL, plan, version)
            self._store.runs.start(
                *about, key=key, actor=LEADER, reason=reason, options=options,
                of_run_id=newest.of_run_id,
            )  # fmt: skip
            return 1
        return self._run_again(newest, key, reason)

    def _run_again(self, newest: CanaryRun, key: str, reason: str) -> int:
        row = self._store.runs.get(newest.id)
        if row is None or row.source not in self._project.settings.sources:
            return 0
        from penstock.project.run_starter import NOTHING_ASKED

        self._project.start_requested(row.source, row.kind, key, LEADER, reason, NOTHING_ASKED)
        return 1


def drop_controls(store: Store, canary_id: int, actor: str) -> None:
    """Drop what replays of a canary have staged, where they have ended."""
    for run in store.canaries.runs(canary_id):
        if run.kind == RunKind.REPLAY and run.is_ended and store.replays.has_staged(run.id):
            store.replays.drop(run.id, actor, f"it was the control of canary {canary_id}")


def _is_by(move: CheckpointMove, runs: set[int]) -> bool:
    return move.act == "moved" and move.run_id in runs


def _changed(run: CanaryRun) -> int:
    return run.inserted + run.updated
