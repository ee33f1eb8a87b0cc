"""`penstock status`: what is going on, from maintained counters; quick however much has happened."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli.breakers import words as breaker_words
from penstock.cli.budget import exhausted_words
from penstock.cli.cadence import class_words
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.run_words import kind_of
from penstock.cli.schedules import outside_words
from penstock.cli.tables import key_column, whole
from penstock.cli.wording import count, duration, iso, local_time, until
from penstock.cli.workers import by_host, scheduler_of, scheduler_words

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.breakers import BreakerView
    from penstock.app.views.budgets import ExhaustedBudgetView
    from penstock.app.views.outlook import SourceOutlook
    from penstock.app.views.schedules import CadenceView
    from penstock.app.views.sources import HoldView, SourceView
    from penstock.project.stale_code import StaleWorker, UnknownWork
    from penstock.settings import ScheduleSettings
    from penstock.store.promises import BreachRow
    from penstock.store.replays import Undecided
    from penstock.store.rows import (
        HoldRow,
        LeaderRow,
        Overview,
        RunRow,
        SourceRow,
        WorkerRow,
    )

SHOWN = 20
# A run that is due and that nobody has started for so long.
OVERDUE_S = 60.0
DESCRIPTION = """\
What is going on: workers, who schedules, active runs and how far they are, what waits and until when,
which replays wait for your decision, what is in quarantine and how to look at it, which promises are
broken, and which runs are due next."""
EXAMPLES = """\
  penstock status
  penstock status --json
  watch penstock status"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "status", "what is going on", DESCRIPTION, EXAMPLES)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened

    with opened(args) as project:
        seen = Seen.of(project, with_outlook=not args.json)
    if args.json:
        args.out.json(seen.as_json())
    else:
        seen.tell(args.out)
    return 0


@dataclass(frozen=True, slots=True)
class Seen:
    """A project at one moment."""

    now: float
    project: str
    environment: str | None
    overview: Overview
    workers: list[WorkerRow]
    leaders: list[LeaderRow]
    runs: list[RunRow]
    sources: list[SourceRow]
    outlooks: dict[str, SourceOutlook]
    closed_hosts: dict[str, float]
    hosts_outside: dict[str, float]
    broken: list[BreakerView]
    exhausted: list[ExhaustedBudgetView]
    holds: list[HoldRow]
    breaches: list[BreachRow]
    undecided: list[Undecided]
    staged_s: float
    given_up: list[CadenceView]
    schedules: dict[str, tuple[ScheduleSettings, ...]]
    stale: list[StaleWorker]
    unknown: list[UnknownWork]

    @classmethod
    def of(cls, project: Project, with_outlook: bool) -> Seen:
        from penstock.app.outlook import host_hours
        from penstock.project.stale_code import stale_workers, unknown_work

        store = project.connection
        now = store.now()
        return cls(
            now=now,
            project=project.settings.project,
            environment=project.settings.environment,
            overview=store.overview(),
            workers=by_host(store.workers()),
            leaders=store.leaders(),
            runs=store.runs(active_only=True, limit=SHOWN),
            sources=store.sources(),
            outlooks={each.source: each for each in project.outlook()} if with_outlook else {},
            closed_hosts=store.closed_hosts(),
            hosts_outside=host_hours(project, now),
            broken=[each for each in project.breakers.each() if each.state != "closed"],
            exhausted=list(project.budgets.exhausted()),
            holds=store.holds(),
            breaches=store.breaches(open_only=True, limit=1000),
            undecided=store.undecided(),
            staged_s=project.settings.retention.staged_s,
            given_up=[each for each in project.schedules.each_cadence() if each.level == "paused"],
            schedules={key: each.schedules for key, each in project.settings.sources.items()},
            stale=stale_workers(project),
            unknown=unknown_work(store),
        )

    def as_json(self) -> dict[str, Any]:
        from penstock.cli.shapes import (
            breach_shape,
            hold_shape,
            leader_shape,
            run_shape,
            shaped,
            source_shape,
            worker_shape,
        )

        scheduler = scheduler_of(self.leaders, self.now)
        return {
            "project": self.project,
            "environment": self.environment,
            "at": iso(self.now),
            "overview": shaped(self.overview),
            "workers": [worker_shape(each, self.now) for each in self.workers],
            "scheduler": leader_shape(scheduler) if scheduler else None,
            "runs": [run_shape(each, self.now) for each in self.runs],
            "sources": [source_shape(each) for each in self.sources],
            "closed_hosts": {host: iso(at) for host, at in self.closed_hosts.items()},
            "hosts_outside": {host: iso(at) for host, at in self.hosts_outside.items()},
            "breakers": [each.as_json() for each in self.broken],
            "exhausted_budgets": [each.as_json() for each in self.exhausted],
            "holds": [hold_shape(each) for each in self.holds],
            "breaches": [breach_shape(each) for each in self.breaches],
            "undecided": [self._undecided_shape(each) for each in self.undecided],
            "stale_workers": [{"pid": each.pid, "files": each.files} for each in self.stale],
            "not_loaded": [{"source": each.source, "stage": each.stage} for each in self.unknown],
        }

    def tell(self, out: Output) -> None:
        out.fields(self._headline())
        if self.runs:
            _tell_runs(self, out)
        for title, pairs, where in (
            ("Waiting", self._waits(), "penstock sources"),
            ("For you to decide", self._decisions(), "penstock runs"),
            ("Quarantined", self._quarantined(), "penstock sources"),
            ("Broken promises", self._broken_promises(), "penstock status --json"),
            ("Next runs", self._next_runs(), "penstock sources"),
        ):
            if pairs:
                out.line()
                out.line(title)
                out.fields([(f"  {name}", text) for name, text in pairs[:SHOWN]])
            if len(pairs) > SHOWN:
                out.line(f"  and {len(pairs) - SHOWN} more: {where}")

    def _headline(self) -> list[tuple[str, str]]:
        seen = self.overview
        states = ("queued", "running", "waiting", "quarantined")
        jobs = [f"{getattr(seen, state):,} {state}" for state in states if getattr(seen, state)]
        environment = f" ({self.environment})" if self.environment else ""
        workers = [("worker", _worker(each, self.now)) for each in self.workers]
        return [
            ("project", self.project + environment),
            *(workers or [("workers", "none; `penstock up` starts one")]),
            *([("scheduler", scheduler_words(self.leaders, self.now))] if self._schedules else []),
            ("jobs", ", ".join(jobs) or "none open"),
            ("records", f"{seen.records:,}"),
            *(("older code", each.words) for each in self.stale),
        ]

    @property
    def _schedules(self) -> bool:
        """Whether it matters who schedules: somebody does, or something is to be scheduled."""
        is_wanted = any(each.next_run_at or each.schedule for each in self.sources)
        return is_wanted or scheduler_of(self.leaders, self.now) is not None

    def _waits(self) -> list[tuple[str, str]]:
        told = [(each.source, each.words) for each in self.unknown]
        told += [
            (
                each.scope or "everything",
                f"{held_words(each)}; penstock unhold {each.scope}".rstrip(),
            )
            for each in self.holds
        ]
        told += [
            (each.key, f"{paused_words(each)}; penstock resume {each.key}")
            for each in self._stopped("paused")
        ]
        told += [(each.key, degraded_words(each)) for each in self._stopped("degraded")]
        told += [(each.source, class_words(each)) for each in self.given_up]
        told += [
            (each.key, f"{until(each.cooldown_until, self.now)}{_why(each.cooldown_reason)}")
            for each in self._stopped("cooldown")
        ]
        told += [
            (host, f"opens {until(closed_until, self.now)}: it asked us to wait")
            for host, closed_until in self.closed_hosts.items()
        ]
        if self.overview.waiting:
            told += [
                (host, f"outside its hours; they start {until(opens_at, self.now)}")
                for host, opens_at in self.hosts_outside.items()
            ]
        told += [(each.name, breaker_words(each, self.now)) for each in self.broken]
        told += [(_whose(each), exhausted_words(each, self.now)) for each in self.exhausted]
        if self.overview.next_due_at is not None:
            jobs = count(self.overview.waiting, "job")
            told.append((jobs, f"the first is due {until(self.overview.next_due_at, self.now)}"))
        return told

    def _stopped(self, by: str) -> list[SourceRow]:
        """The sources that this stops."""
        return [each for each in self.sources if self._stop(each.key, by)]

    def _stop(self, key: str, by: str) -> bool:
        return key in self.outlooks and self.outlooks[key].stop(by) is not None

    def _decisions(self) -> list[tuple[str, str]]:
        """What is staged and was neither committed nor dropped; an act that was cut short goes first."""
        return [(_named(each), self._decision(each)) for each in self.undecided]

    def _decision(self, found: Undecided) -> str:
        commands = _commands(found)
        if found.is_cut_short:
            return f"interrupted half-way; go on with it: {commands[0]}"
        look, commit, drop = commands
        left = until(found.finished_at + self.staged_s, self.now)
        return f"look at it: {look}; apply it: {commit}; or {drop} (by itself {left})"

    def _undecided_shape(self, found: Undecided) -> dict[str, Any]:
        drops_at = None if found.is_cut_short else found.finished_at + self.staged_s
        return {
            "run": found.run_id,
            "source": found.source,
            "kind": "undo" if found.is_undo else "replay",
            "of_run": found.of_run_id,
            "is_cut_short": found.is_cut_short,
            "finished_at": iso(found.finished_at),
            "drops_at": iso(drops_at),
            "commands": _commands(found),
        }

    def _quarantined(self) -> list[tuple[str, str]]:
        look = "penstock quarantine list --source"
        return [
            (each.key, f"{count(each.quarantined, 'job')}: {look} {each.key}")
            for each in self.sources
            if each.quarantined
        ]

    def _broken_promises(self) -> list[tuple[str, str]]:
        look = "penstock schedules explain"
        return [
            (each.source, f"since {local_time(each.since)} {each.detail}: {look} {each.source}")
            for each in self.breaches
        ]

    def _next_runs(self) -> list[tuple[str, str]]:
        due = sorted((each.next_run_at, each.key) for each in self.sources if each.next_run_at)
        told = [(key, self._next_run(key, at)) for at, key in due[:SHOWN]]
        return told + [(key, "") for _, key in due[SHOWN:]]

    def _next_run(self, key: str, at: float) -> str:
        from penstock.app.hours import outside

        begin_at = outside(self.schedules.get(key, ()), at)
        if begin_at is None or self.now - at > OVERDUE_S:
            return _due(at, self.now)
        return outside_words(begin_at, self.now)


def _whose(budget: ExhaustedBudgetView) -> str:
    kind, _, name = budget.scope.partition(":")
    return {"project": "everything", "source": name}.get(kind, f"run {name}")


def _named(found: Undecided) -> str:
    if found.is_undo:
        return f"undo of run {found.of_run_id}"
    return f"replay {found.run_id} of {found.source}"


def _commands(found: Undecided) -> list[str]:
    if found.is_undo:
        return [f"penstock undo {found.of_run_id}"]
    command = f"penstock replay {found.run_id}"
    if found.is_cut_short:
        return [f"{command} --commit"]
    return [f"{command} --{act}" for act in ("diff", "commit", "drop")]


def _due(at: float, now: float) -> str:
    """Nobody may be there to start it, and nobody else would notice."""
    if now - at > OVERDUE_S:
        return f"overdue for {duration(now - at)}; penstock schedules"
    return until(at, now)


def _worker(worker: WorkerRow, now: float) -> str:
    if worker.lease_expires_at <= now:
        return f"{worker.id} on {worker.host} is gone; its jobs run again when work goes on"
    age = duration(now - worker.started_at)
    return f"{worker.id}, pid {worker.pid} on {worker.host}, for {age}, {worker.running} running"


def _tell_runs(seen: Seen, out: Output) -> None:
    from penstock.app.views.runs import seconds_of

    columns = (
        *(
            "run",
            "source",
            key_column("kind", 2, 11),
            "state",
            whole("pages", 1),
            whole("queued", 4),
        ),
        *(whole("running", 4), whole("waiting", 4), whole("bad", 2), whole("for", 3)),
    )
    out.line()
    out.line("Active runs")
    out.table(
        columns,
        [
            (
                *(each.id, each.source, kind_of(each), each.state),
                f"{each.pages_done:,} of {each.pages:,}",
                *(each.queued, each.running, each.waiting, each.quarantined),
                duration(seconds_of(each, seen.now)),
            )
            for each in seen.runs
        ],
    )
    if seen.overview.active_runs > len(seen.runs):
        out.line(f"and {seen.overview.active_runs - len(seen.runs)} more: penstock runs --active")


def held_words(hold: HoldRow | HoldView) -> str:
    """Since when, by whom and why."""
    return f"held since {local_time(hold.at)} by {hold.actor}{_why(hold.reason)}"


def paused_words(row: SourceRow | SourceView) -> str:
    return f"paused since {local_time(row.paused_at)}{_why(row.pause_reason)}"


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def degraded_words(row: SourceRow | SourceView) -> str:
    """Since when and why a source runs probes only, and how it comes back."""
    since = local_time(row.degraded_at)
    good = f"; {count(row.good_probes, 'probe')} went well" if row.good_probes else ""
    return f"degraded since {since}, probes only: {row.degraded_reason}{good}; penstock resume {row.key}"
