"""`penstock drain`: perform one stage of a prepared run, as an orchestrator's task does."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, whole_number
from penstock.cli.render.output import Output
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.drains import DrainView

DESCRIPTION = """\
Perform the jobs of one stage of a prepared run, until nothing of it is left: retries are waited for, and
limits, budgets and breakers hold as always. An orchestrator runs it as a task, in the order of the stages; a
task that was killed is run again and continues. On SQLite one drain works at a time, and none beside
`penstock up`; on Postgres any number, on any hosts, each on its part (--shard)."""
EXAMPLES = """\
  penstock prepare acme.com --key "$RUN_ID"      prints 12
  penstock drain 12 --stages
  penstock drain 12 discover
  penstock drain 12 extract --shard 1/4 --json
  penstock drain 12 extract --until idle --deadline 10m

exit codes: 0 ok, 3 partial, 4 failed, 6 another Penstock works on this SQLite file, 7 a stage before it is
not done, 75 not done yet: run it again, 130 interrupted"""
FIRST_ERRORS = 3
LONGEST_ERROR = 200
STATES = {"partial": exits.PARTIAL, "failed": exits.FAILED, "open": exits.NOT_YET}


def register(commands: Commands) -> None:
    parser = add_command(commands, "drain", DESCRIPTION, EXAMPLES)
    parser.add_argument("run_id", type=whole_number, metavar="RUN", help="the prepared run")
    parser.add_argument("step", nargs="?", metavar="STEP", help="the stage, or a step of it")
    parser.add_argument("--stages", action="store_true", help="list the run's stages instead")
    parser.add_argument(
        "--shard", type=_shard, default=(1, 1), metavar="I/N", help="the I-th of N parts (1/1)"
    )
    parser.add_argument(
        "--until",
        choices=("closed", "idle"),
        default="closed",
        metavar="WHEN",
        help="closed: nothing is left (default); idle: nothing more can be done now",
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait for the stages before it, instead of refusing"
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="first queue its quarantined jobs again"
    )
    parser.add_argument("--deadline", metavar="10m", help="stop after this time, in good order")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def _shard(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 1/4")
    return int(found[1]), int(found[2])


def run(args: argparse.Namespace) -> int:
    from penstock.app.moments import length
    from penstock.cli.lookup import opened

    if bool(args.step) == args.stages:
        raise UsageError(
            "drain what? A STEP, or --stages to list them" if not args.step else "STEP or --stages",
            f"penstock drain {args.run_id} --stages",
        )
    with opened(args) as project:
        if args.stages:
            return _list(project, args)
        view = project.drain(
            args.run_id,
            args.step,
            shard=args.shard,
            until=args.until,
            wait_upstream=args.wait,
            retry_failed=args.retry_failed,
            deadline_s=None if args.deadline is None else length("--deadline", args.deadline),
            on_progress=_progress(args.out),
            tell=args.out.note,
        )
        _tell(args, view)
    if view.ended == "stopped":
        return exits.INTERRUPTED
    return STATES.get(view.state, exits.DONE)


def _list(project: Project, args: argparse.Namespace) -> int:
    stages = project.drains.stages(args.run_id)
    if args.json:
        args.out.json([stage.as_json() for stage in stages])
        return exits.DONE
    args.out.table(
        ("stage", "unit", "after", "state", "done", "open", "quarantined"),
        [
            (
                *(stage.name, stage.unit, ", ".join(stage.after) or "-", stage.state),
                sum(stage.counts[name] for name in ("succeeded", "skipped", "cancelled")),
                sum(stage.counts[name] for name in ("queued", "running", "waiting", "held")),
                stage.counts["quarantined"],
            )
            for stage in stages
        ],
    )
    return exits.DONE


def _progress(out: Output) -> Callable[[DrainView], None]:
    """A line whenever something has changed, on the side."""
    last: list[dict[str, Any]] = []

    def show(view: DrainView) -> None:
        if last[-1:] != [view.counts]:
            last[:] = [view.counts]
            out.note(f"{view.step} {view.shard}: {_counts(view)}")

    return show


def _counts(view: DrainView) -> str:
    shown = [f"{number:,} {name}" for name, number in view.counts.items() if number]
    return ", ".join(shown) or "no jobs"


def _tell(args: argparse.Namespace, view: DrainView) -> None:
    out: Output = args.out
    if args.json:
        out.json(view.as_json())
        return
    out.line(f"{view.step} of run {view.run} ({view.source}) is {view.state}: {_counts(view)}")
    if not view.is_closed:
        out.line(f"not done ({view.ended}): {view.waits_for}")
    for each in view.errors[:FIRST_ERRORS]:
        error = out.short(each.error or each.cause, LONGEST_ERROR)
        out.line(f"  {each.kind}: {error} ({each.jobs:,}, the first: penstock jobs {each.job_id})")
    if view.run_state in ("completed", "partial", "failed", "cancelled"):
        out.line(f"run {view.run} is {view.run_state}")
