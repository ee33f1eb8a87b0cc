"""Drains as front ends see them: the stages of a prepared run, and how far one of them is."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.app.views.runs import RunCauseView
from penstock.app.views.view import Content, View
from penstock.errors import PenstockError
from penstock.gates.capacity import scope_of

COUNTED = (
    "queued",
    "running",
    "waiting",
    "held",
    "succeeded",
    "skipped",
    "quarantined",
    "cancelled",
)


class DrainStage(View, frozen=True, kw_only=True):
    """A stage of a pipeline as an orchestrator's task: what it is called, and which tasks come before it.

    `steps` are all steps that one job of it performs; the stage has the name of the first. `phase` is 0 for
    a stage that nothing comes before. `state` is `blocked` while a stage before it is open, then `open`, then
    `closed`; `counts` are its jobs by state. Both are of a run: without one there are no jobs.
    """

    name: str
    steps: tuple[str, ...]
    after: tuple[str, ...]
    unit: str
    is_gather: bool
    is_required: bool
    phase: int
    state: str
    counts: dict[str, int]


class DrainView(View, frozen=True, kw_only=True):
    """How far a drain is, or how it ended.

    `ended` is `closed`, `idle`, `deadline` or `stopped`, and empty while it goes on. `state` is the verdict
    on the stage: `ok`, `partial` (some of its jobs are in quarantine), `failed` (all of them are, or one of a
    required step), `skipped` (what it gathers from failed), or `open`. `counts` are of the whole stage, and
    `done` is how they have changed since the drain began. `waits_for` says why it is not closed.
    """

    run: int
    source: str
    step: str
    shard: str
    ended: str
    is_closed: bool
    state: str
    run_state: str
    counts: dict[str, int]
    done: dict[str, int]
    errors: tuple[RunCauseView, ...]
    waits_for: Content[str]
    seconds: float

    def raise_if_failed(self, partial: Literal["ok", "failed"] = "ok") -> None:
        """Raise DrainFailed unless the stage is closed and ok; `partial` says what partial counts as."""
        what = f"{self.step} of run {self.run} ({self.source})"
        if not self.is_closed:
            raise DrainFailed(
                f"{what} is not done: {self.waits_for or self.ended}",
                "drain it again: it continues where it stopped",
                code="drain_open",
            )
        if self.state == "failed" or (self.state == "partial" and partial == "failed"):
            first = f": {self.errors[0].error}" if self.errors else ""
            raise DrainFailed(f"{what} is {self.state}{first}", _hint(self))


class DrainFailed(PenstockError):
    """A stage did not come to what was asked for."""

    exit_code = 4
    code = "drain_failed"


def _hint(view: DrainView) -> str:
    quarantined = view.counts["quarantined"]
    return f"{quarantined:,} of its jobs are in quarantine" if quarantined else ""


def shard_words(shard: int, shards: int) -> str:
    """A part of a stage, as it is written: the second of four is `2/4`."""
    return f"{shard + 1}/{shards}"


def scope_words(text: str) -> str:
    """What a worker is for, if it is a drain's: `run 5 extract 1/4`; '' if it is not."""
    scope = scope_of(text)
    if scope is None:
        return ""
    part = f" {shard_words(scope.shard, scope.shards)}" if scope.shards > 1 else ""
    return f"run {scope.run_id} {scope.stage}{part}"


def counts_of(count: msgspec.Struct) -> dict[str, int]:
    return {name: getattr(count, name) for name in COUNTED}
