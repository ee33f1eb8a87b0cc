"""Why something does not start, as front ends see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Content, Time, View
from penstock.errors import Remedy

if TYPE_CHECKING:
    from penstock.outlook.outlook import Outlook
    from penstock.outlook.seen_gates import GateSeen


# Gates whose reason may be the error of a job.
QUOTING = ("breaker", "degraded", "job", "run")


class GateView(View, frozen=True, kw_only=True):
    """A gate at this moment. `by` says what closes it, `opens_at` when it opens by itself.

    `remedy` is the verb of the project that opens it, `command` the same for a shell.
    """

    name: str = msgspec.field(name="gate")
    is_open: bool
    passes: bool
    by: Content[str]
    since: Time | None
    opens_at: Time | None
    command: str | None
    remedy: Remedy | None

    def may_quote(self) -> bool:
        return self.name in QUOTING


class Explanation(View, frozen=True, kw_only=True):
    """Which gates keep a source, run or job from starting, as the next turn of the workers finds them.

    `job_id` is the job that the gates are about: the one asked for, or the next one of the source or run.
    `stands` is `starts`, `running`, `ended`, `idle` (there is nothing to do), or says what it waits for: a
    `person`, a `time` or `others` to end. `gate` is the one that decides. `at_the_request` are gates that
    would stop a request once the job runs.
    """

    source: str
    run_id: int | None = msgspec.field(name="run")
    job_id: int | None = msgspec.field(name="job")
    now: Time = msgspec.field(name="at")
    would_start: bool
    stands: str
    gate: str | None
    opens_at: Time | None
    command: str | None
    remedy: Remedy | None
    gates: list[GateView]
    at_the_request: list[GateView]


class SourceOutlook(View, frozen=True, kw_only=True):
    """A source in a list: how it stands, the gate that decides, and since and until when.

    `gates` are the closed ones in the order in which they are asked. `stops` are those that keep it from
    being asked for anything, whether or not there is something to do: the "why not now" of a list.
    """

    source: str
    is_configured: bool
    run_id: int | None = msgspec.field(name="run")
    job_id: int | None = msgspec.field(name="job")
    now: Time = msgspec.field(name="at")
    would_start: bool
    stands: str
    gate: str | None
    by: Content[str]
    since: Time | None
    opens_at: Time | None
    command: str | None
    remedy: Remedy | None
    gates: list[GateView]
    stops: list[GateView]

    def may_quote(self) -> bool:
        return self.gate in QUOTING

    def stop(self, name: str) -> GateView | None:
        """The stop of this name, if it is one."""
        return next((each for each in self.stops if each.name == name), None)


def gate_view(gate: GateSeen) -> GateView:
    return GateView(
        name=gate.name,
        is_open=gate.is_open,
        passes=gate.is_open,
        by=gate.by,
        since=gate.since,
        opens_at=gate.opens_at,
        command=gate.command or None,
        remedy=gate.remedy,
    )


def explanation_view(outlook: Outlook, at_the_request: Iterable[GateSeen]) -> Explanation:
    gates = [gate_view(gate) for gate in outlook.gates]
    deciding = _deciding(outlook, gates)
    return Explanation(
        source=outlook.source,
        run_id=outlook.run_id,
        job_id=outlook.job_id,
        now=outlook.now,
        would_start=outlook.would_start,
        stands=outlook.stands,
        gate=outlook.gate or None,
        opens_at=outlook.opens_at,
        command=outlook.command or None,
        remedy=None if deciding is None else deciding.remedy,
        gates=gates,
        at_the_request=[gate_view(gate) for gate in at_the_request],
    )


def source_outlook(
    outlook: Outlook, is_configured: bool, stops: Iterable[GateSeen]
) -> SourceOutlook:
    gates = [gate_view(gate) for gate in outlook.gates if not gate.is_open]
    deciding = _deciding(outlook, gates)
    return SourceOutlook(
        source=outlook.source,
        is_configured=is_configured,
        run_id=outlook.run_id,
        job_id=outlook.job_id,
        now=outlook.now,
        would_start=outlook.would_start,
        stands=outlook.stands,
        gate=outlook.gate or None,
        by="" if deciding is None else deciding.by,
        since=None if deciding is None else deciding.since,
        opens_at=outlook.opens_at,
        command=None if deciding is None else deciding.command,
        remedy=None if deciding is None else deciding.remedy,
        gates=gates,
        stops=[gate_view(gate) for gate in stops],
    )


def _deciding(outlook: Outlook, gates: Iterable[GateView]) -> GateView | None:
    return next((gate for gate in gates if gate.name == outlook.gate), None)
