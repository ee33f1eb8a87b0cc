"""`penstock status`: what is going on, from maintained counters; quick however much has happened."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.commands.breakers import words as breaker_words
from penstock.cli.commands.budget import exhausted_words
from penstock.cli.commands.cadence import class_words
from penstock.cli.commands.schedules import outside_words
from penstock.cli.commands.workers import not_loaded_words, scheduler_words, stale_words
from penstock.cli.parser import Commands, add_command, add_json, add_private
from penstock.cli.remedies import command_of
from penstock.cli.render.output import Output
from penstock.cli.render.run_words import kind_of
from penstock.cli.render.tables import key_column, whole
from penstock.cli.render.wording import count, duration, local_time, until
from penstock.errors import Remedy

if TYPE_CHECKING:
    from penstock.app.views.budgets import ExhaustedBudgetView
    from penstock.app.views.releases import OtherWorkerView
    from penstock.app.views.sources import HoldView, NextRunView, SourceView
    from penstock.app.views.status import StatusView, UndecidedView
    from penstock.app.views.workers import WorkerView

SHOWN = 20
SHORT_ID = 12
DESCRIPTION = """\
What is going on: the release, workers, the scheduler, active runs and their progress, open alerts, what waits
and until when, replays that wait for a commit or drop, quarantine, breached service levels, and the next
runs."""
EXAMPLES = """\
  penstock status
  penstock status --json
  watch penstock status"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "status", DESCRIPTION, EXAMPLES)
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        seen = project.status(outlook=not args.json)
    if args.json:
        args.out.json(_json(seen))
    else:
        _Status(seen).tell(args.out)
    return 0


def _json(seen: StatusView) -> dict[str, Any]:
    undecided = [{**each.as_json(), "commands": _commands(each)} for each in seen.undecided]
    return {**seen.as_json(), "undecided": undecided}


class _Status:
    """A project at one moment, in words."""

    def __init__(self, seen: StatusView) -> None:
        self.seen = seen

    def tell(self, out: Output) -> None:
        out.fields(self._headline())
        if self.seen.runs:
            _tell_runs(self.seen, out)
        for title, pairs, where in (
            ("Alerts", self._alerts(), "penstock alerts"),
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
        seen, sums = self.seen, self.seen.overview
        states = ("queued", "running", "waiting", "quarantined")
        jobs = [f"{getattr(sums, state):,} {state}" for state in states if getattr(sums, state)]
        environment = f" ({seen.environment})" if seen.environment else ""
        workers = [("worker", _worker(each, seen.now)) for each in seen.workers]
        return [
            ("project", seen.project + environment),
            *self._release(),
            *(workers or [("workers", "none; `penstock up` starts one")]),
            *([("scheduler", self._scheduler())] if self._is_scheduling else []),
            ("jobs", ", ".join(jobs) or "none open"),
            ("records", f"{sums.records:,}"),
            *(("older code", stale_words(each)) for each in seen.stale_workers),
        ]

    def _release(self) -> list[tuple[str, str]]:
        """What the environment runs, if it has releases, and the workers that run something else."""
        release = self.seen.release
        if release.release is None:
            lacks = "none, and workers need one; penstock release promote brings one"
            return [("release", lacks)] if release.is_required else []
        since = f"since {local_time(release.since)} by {release.by}"
        return [
            ("release", f"{release.release[:SHORT_ID]} {since}"),
            *(("other release", other_worker_words(each)) for each in release.others),
        ]

    def _scheduler(self) -> str:
        leader = self.seen.scheduler
        return scheduler_words([] if leader is None else [leader], self.seen.now)

    @property
    def _is_scheduling(self) -> bool:
        """Whether it matters who schedules: somebody does, or something is to be scheduled."""
        is_wanted = any(each.next_run_at or each.schedule for each in self.seen.sources)
        return is_wanted or self.seen.scheduler is not None

    def _waits(self) -> list[tuple[str, str]]:
        seen = self.seen
        told = [(each.source, not_loaded_words(each)) for each in seen.not_loaded]
        told += [(each.source or "everything", _held(each)) for each in seen.holds]
        told += [
            (each.key, f"{paused_words(each)}; penstock resume {each.key}")
            for each in seen.stopped("paused")
        ]
        told += [(each.key, degraded_words(each)) for each in seen.stopped("degraded")]
        told += [(each.source, class_words(each)) for each in seen.given_up]
        told += [
            (each.key, f"{until(each.cooldown_until, seen.now)}{_why(each.cooldown_reason)}")
            for each in seen.stopped("cooldown")
        ]
        told += self._hosts()
        told += [(each.name, breaker_words(each, seen.now)) for each in seen.breakers]
        told += [(_whose(each), exhausted_words(each, seen.now)) for each in seen.exhausted_budgets]
        if seen.overview.next_due_at is not None:
            jobs = count(seen.overview.waiting, "job")
            told.append((jobs, f"the first is due {until(seen.overview.next_due_at, seen.now)}"))
        return told

    def _hosts(self) -> list[tuple[str, str]]:
        seen = self.seen
        told = [
            (host, f"opens {until(closed_until, seen.now)}: it asked us to wait")
            for host, closed_until in seen.closed_hosts.items()
        ]
        if seen.overview.waiting:
            told += [
                (host, f"outside its hours; they start {until(opens_at, seen.now)}")
                for host, opens_at in seen.hosts_outside.items()
            ]
        return told

    def _decisions(self) -> list[tuple[str, str]]:
        """What is staged and was neither committed nor dropped; an act that was cut short goes first."""
        return [(_named(each), self._decision(each)) for each in self.seen.undecided]

    def _decision(self, found: UndecidedView) -> str:
        commands = _commands(found)
        if found.drops_at is None:
            return f"interrupted; continue it: {commands[0]}"
        look, commit, drop = commands
        left = until(found.drops_at, self.seen.now)
        return f"look at it: {look}; apply it: {commit}; or {drop} (by itself {left})"

    def _alerts(self) -> list[tuple[str, str]]:
        return [
            (
                each.source or "project",
                f"{each.severity}: {each.summary}: penstock alerts show {each.id}",
            )
            for each in self.seen.alerts
        ]

    def _quarantined(self) -> list[tuple[str, str]]:
        look = "penstock quarantine list --source"
        return [
            (each.key, f"{count(each.quarantined, 'job')}: {look} {each.key}")
            for each in self.seen.sources
            if each.quarantined
        ]

    def _broken_promises(self) -> list[tuple[str, str]]:
        look = "penstock schedules explain"
        return [
            (each.source, f"since {local_time(each.since)} {each.detail}: {look} {each.source}")
            for each in self.seen.breaches
        ]

    def _next_runs(self) -> list[tuple[str, str]]:
        told = [(each.source, _due(each, self.seen.now)) for each in self.seen.next_runs]
        scheduled = sum(1 for each in self.seen.sources if each.next_run_at)
        return told + [("", "")] * (scheduled - len(told))


def other_worker_words(worker: OtherWorkerView) -> str:
    """A worker that does not run the release, and what to do."""
    return (
        f"{worker.worker} on {worker.host} has loaded something else; restart it with the files of the "
        "release: penstock release checkout"
    )


def _whose(budget: ExhaustedBudgetView) -> str:
    kind, _, name = budget.scope.partition(":")
    return {"project": "everything", "source": name}.get(kind, f"run {name}")


def _named(found: UndecidedView) -> str:
    if found.is_undo:
        return f"undo of run {found.of_run_id}"
    return f"replay {found.run_id} of {found.source}"


def _commands(found: UndecidedView) -> list[str]:
    return [command_of(each) for each in found.remedies]


def _due(run: NextRunView, now: float) -> str:
    """Nobody may be there to start it, and nobody else would notice."""
    if run.is_overdue:
        return f"overdue for {duration(now - run.at)}; penstock schedules"
    if run.begins_at is not None:
        return outside_words(run.begins_at, now)
    return until(run.at, now)


def _worker(worker: WorkerView, now: float) -> str:
    if worker.lease_expires_at <= now:
        return f"{worker.id} on {worker.host} is gone; its jobs run again when a worker starts"
    age = duration(now - worker.started_at)
    return f"{worker.id}, pid {worker.pid} on {worker.host}, for {age}, {worker.running} running"


def _tell_runs(seen: StatusView, out: Output) -> None:
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
                f"{each.counts['pages_done']:,} of {each.counts['pages']:,}",
                *(each.counts[state] for state in ("queued", "running", "waiting", "quarantined")),
                duration(each.seconds),
            )
            for each in seen.runs
        ],
    )
    if seen.overview.active_runs > len(seen.runs):
        out.line(f"and {seen.overview.active_runs - len(seen.runs)} more: penstock runs --active")


def _held(hold: HoldView) -> str:
    return f"{held_words(hold)}; {command_of(Remedy('sources.unhold', hold.source))}"


def held_words(hold: HoldView) -> str:
    """Since when, by whom and why."""
    return f"held since {local_time(hold.at)} by {hold.actor}{_why(hold.reason)}"


def paused_words(row: SourceView) -> str:
    return f"paused since {local_time(row.paused_at)}{_why(row.pause_reason)}"


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def degraded_words(row: SourceView) -> str:
    """Since when and why a source runs probes only, and how it comes back."""
    since = local_time(row.degraded_at)
    good = f"; {count(row.good_probes, 'probe')} went well" if row.good_probes else ""
    return f"degraded since {since}, probes only: {row.degraded_reason}{good}; penstock resume {row.key}"
