"""What is folded: a line of the journal as far as it counts, and what attempts have measured."""

from __future__ import annotations

import msgspec

# Measure, label, how much.
Amount = tuple[str, str, float]


class Line(msgspec.Struct, frozen=True, array_like=True):
    """A line of the journal, as far as it counts.

    `stage` is that of its job, `began_at` when its attempt started if that was folded before, `run_key` the
    key of the run that it is about. `data` and `detail` are only those of events that are counted by them.

    Of what is about recovery: `run_kind` is the kind of the run that it is about. `idle_since` is since when
    nobody worked on a job that is released now, or that was released before the attempt that starts now.
    `ended` is how a run ended before that is open again. `restarts` are the cancelled runs that a new one
    starts over.
    """

    id: int
    at: float
    kind: str
    source_id: int | None
    run_id: int | None
    job_id: int | None
    attempt: int | None
    stage: str | None = None
    began_at: float | None = None
    run_key: str | None = None
    data: str | None = None
    detail: str = ""
    actor: str = ""
    run_kind: str | None = None
    idle_since: float | None = None
    ended: str | None = None
    restarts: list[int] | None = None


class Measured(msgspec.Struct, frozen=True, array_like=True):
    """What the attempts of a run measured in one turn: [measure, label, amount] of each."""

    id: int
    at: float
    run_id: int
    source_id: int | None
    amounts: list[Amount]
