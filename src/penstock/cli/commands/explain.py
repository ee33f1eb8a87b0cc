"""`penstock explain`: why something is not running, when it will, and what would let it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.cli.commands.schedules import outside_words
from penstock.cli.parser import Commands, add_command, add_json, add_private, whole_number
from penstock.cli.render.job_terms import terms_fields
from penstock.cli.render.output import Output
from penstock.cli.render.queues import Queue
from penstock.cli.render.run_words import kind_of
from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import count, duration, local_time, shortened, until
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.jobs import JobTimeline, JobView, TermsView
    from penstock.app.views.outlook import Explanation, GateView
    from penstock.app.views.runs import RunView

DESCRIPTION = """\
Why a source, a run or a job does not start: every gate before it, in the order in which they are asked,
whether it passes or blocks, by what, since when, until when, and the command that helps. `explain` runs the
next real turn and rolls it back, so its answer matches what workers will do. For a job, it also shows its
history."""
EXAMPLES = """\
  penstock explain acme.com
  penstock explain --run 12
  penstock explain --job 345
  penstock explain 12          a run, unless a source has that name
  penstock explain acme.com --json"""
# When a gate that opens by itself has opened.
OPENS = {
    "job": "when it is due",
    "host": "when the hours of its host begin",
    "run": "when there is something to spend again",
    "window": "when its hours begin",
    "breaker": "when its breaker lets one through",
    "cooldown": "when it may be asked again",
    "rate": "when the rate has room",
}
COLUMNS = (
    *(whole("gate"), whole("now"), text("by", 0, 10), whole("since", 5), whole("passes", 2)),
    whole("what to do"),
)
LONGEST_KEY, LONGEST_ERROR = 80, 200


def register(commands: Commands) -> None:
    parser = add_command(commands, "explain", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "target", nargs="?", metavar="SOURCE|RUN", help="a source, or a run's number"
    )
    parser.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="this run's next job"
    )
    parser.add_argument("--job", dest="job_id", type=whole_number, metavar="JOB", help="this job")
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    if [args.target, args.run_id, args.job_id].count(None) != 2:
        raise UsageError(
            "explain what? A SOURCE, --run RUN or --job JOB", "penstock status shows what there is"
        )
    with opened(args) as project:
        told = _told(project, args)
        if args.json:
            args.out.json(told.as_json())
        else:
            told.tell(args.out)
    return 0


def _told(project: Project, args: argparse.Namespace) -> Told:
    from penstock.cli.lookup import run_or_source

    target = None if args.target is None else run_or_source(project, args.target)
    run_id = target if isinstance(target, int) else args.run_id
    outlook = project.explain(
        target if isinstance(target, str) else None, run=run_id, job=args.job_id
    )
    told = Told(
        outlook,
        project.jobs.get(outlook.job_id) if outlook.job_id else None,
        project.runs.get(outlook.run_id) if outlook.run_id else None,
    )
    if args.job_id is not None:
        told.timeline = project.jobs.timeline(args.job_id)
        told.terms = project.jobs.detail(args.job_id).terms
    elif run_id is None:
        told.about = _about_source(project, outlook)
        told.queue = Queue(project, outlook.source)
    return told


@dataclass
class Told:
    """All that is told of one thing."""

    outlook: Explanation
    job: JobView | None
    run: RunView | None
    about: list[tuple[str, str]] = field(default_factory=list)
    timeline: JobTimeline | None = None
    queue: Queue | None = None
    terms: TermsView | None = None

    def as_json(self) -> dict[str, Any]:
        outlook = self.outlook
        told: dict[str, Any] = {**outlook.as_json(), "verdict": verdict(outlook)}
        if self.about:
            told["about"] = dict(self.about)
        if self.queue is not None:
            told["queue"] = self.queue.shapes()
        if self.run is not None:
            told["run_row"] = self.run.as_json()
        if self.job is not None:
            told["job_row"] = self.job.as_json()
        if self.terms is not None:
            told["terms"] = self.terms.as_json()
        return told if self.timeline is None else told | self.timeline.as_json()

    def tell(self, out: Output) -> None:
        outlook = self.outlook
        out.line(self._title(out))
        out.line(verdict(outlook))
        out.line()
        out.table(COLUMNS, (_gate_line(gate, outlook.now) for gate in outlook.gates))
        if outlook.at_the_request:
            out.line()
            out.line("When it asks")
            out.table(COLUMNS, (_gate_line(gate, outlook.now) for gate in outlook.at_the_request))
        if self.about:
            out.line()
            out.line("About it")
            out.fields([(f"  {name}", text) for name, text in self.about])
        if self.queue is not None and self.queue.rows:
            out.line()
            self.queue.tell(out, outlook.now)
        if self.terms is not None and self.job is not None:
            out.line()
            out.fields(terms_fields(self.terms, self.job.tries))
        if self.timeline is not None:
            _tell_timeline(self.timeline, self.job, out)

    def _title(self, out: Output) -> str:
        words = [self.outlook.source]
        if self.run is not None:
            words.append(f"run {self.run.id} ({kind_of(self.run)}, {self.run.state})")
        if self.job is not None:
            key = out.short(self.job.key, LONGEST_KEY)
            words.append(f"job {self.job.id} ({self.job.stage} {key}, {self._job_state})")
        return ", ".join(words)

    @property
    def _job_state(self) -> str:
        """As the next turn finds it: what is due by now is woken first."""
        is_ready = any(gate.name == "job" and gate.is_open for gate in self.outlook.gates)
        return "queued" if is_ready or self.job is None else self.job.state


def verdict(outlook: Explanation) -> str:
    """In one line: when it starts, or what it waits for."""
    from penstock.app.outlook import for_a_person

    gate = next((each for each in outlook.gates if each.name == outlook.gate), None)
    by = gate.by if gate else ""
    match outlook.stands:
        case "starts":
            return "would start now"
        case "running":
            since = f", for {duration(outlook.now - gate.since)}" if gate and gate.since else ""
            return f"is {by}{since}"
        case "ended":
            if outlook.opens_at is not None:
                return f"has ended: {by} {until(outlook.opens_at, outlook.now)}"
            return f"has ended: {by}" + (f"; {outlook.command}" if outlook.command else "")
        case "idle":
            if outlook.opens_at is None:
                return f"nothing to do; {outlook.command}"
            return f"nothing to do; the next run is due {until(outlook.opens_at, outlook.now)}"
        case "person":
            return f"waits for you: {'; '.join(for_a_person(outlook))}"
        case "time":
            left_s = (outlook.opens_at or outlook.now) - outlook.now
            when = OPENS.get(outlook.gate or "", "")
            return f"starts in {duration(left_s)} {when}".rstrip()
        case _:
            return f"waits: {by}"


def _gate_line(gate: GateView, now: float) -> tuple[object, ...]:
    return (
        gate.name,
        "passes" if gate.is_open else "blocks",
        shortened(gate.by, LONGEST_ERROR),
        local_time(gate.since),
        until(gate.opens_at, now) if gate.opens_at is not None else "",
        gate.command,
    )


def _about_source(project: Project, outlook: Explanation) -> list[tuple[str, str]]:
    row = project.sources.state(outlook.source)
    told = []
    if row.last_run_id is not None:
        ended = f" {local_time(row.last_finished_at)}" if row.last_finished_at else ""
        told.append(("last run", f"{row.last_run_id}, {row.last_state}{ended}"))
    coming = project.sources.next_run(outlook.source)
    if coming is not None:
        due = until(coming.at, outlook.now)
        is_outside = coming.begins_at is not None
        when = outside_words(coming.begins_at or 0.0, outlook.now) if is_outside else due
        told.append(("next run", f"{when} ({row.schedule})"))
    elif row.schedule:
        told.append(("schedule", row.schedule))
    open_jobs = [
        f"{getattr(row, state):,} {state}"
        for state in ("queued", "running", "waiting", "quarantined")
        if getattr(row, state)
    ]
    if open_jobs:
        told.append(("jobs", ", ".join(open_jobs)))
    if row.degraded_at is not None:
        why = f": {row.degraded_reason}" if row.degraded_reason else ""
        told.append(("degraded", f"since {local_time(row.degraded_at)}{why}; only probes run"))
    return told


def _tell_timeline(timeline: JobTimeline, job: JobView | None, out: Output) -> None:
    if timeline.attempts:
        out.line()
        out.table(
            (
                "attempt",
                key_column("worker", 4, 12),
                "began",
                column("took", 3),
                "outcome",
                text("why", 1),
            ),
            [
                (
                    *(str(each.attempt), each.worker, local_time(each.started_at)),
                    duration(each.ended_at - each.started_at) if each.ended_at else "",
                    *(each.outcome, shortened(each.detail, LONGEST_ERROR)),
                )
                for each in timeline.attempts
            ],
        )
    pairs: list[tuple[str, object]] = []
    if job is not None and job.error:
        pairs.append(("error", f"{job.kind}: {job.error}"))
    pairs += [
        ("snapshot", f"{each.id}, {each.status} {each.url}, {local_time(each.fetched_at)}")
        for each in timeline.snapshots
    ]
    pairs += [
        ("enqueued", f"{count(each.jobs, 'job')} of {each.stage}, {each.state}")
        for each in timeline.children
    ]
    pairs += [("record", f"{each.collection} {each.key}") for each in timeline.records]
    if timeline.parent_id is not None:
        pairs.append(("came from", f"job {timeline.parent_id}"))
    if pairs:
        out.line()
        out.fields(pairs)
