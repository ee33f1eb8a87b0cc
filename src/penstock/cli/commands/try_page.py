"""`penstock try`: the steps of one page, performed without writing anything."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, add_private
from penstock.cli.render.tables import column
from penstock.cli.render.wording import count, shortened, shortened_inside
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.tried import TriedView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Run the page steps of a source, and the candidate steps that follow, on one address, and print what would be
saved beside what is stored. Nothing is written: no record, run, snapshot or checkpoint, and no budget is
charged. Pages that the steps would enqueue are named, not fetched; gather steps do not run. With the number
of a job instead of an address, the steps get the item of that job."""
EXAMPLES = """\
  penstock try acme.com https://acme.com/p/17
  penstock try acme.com https://acme.com/p/17 --offline
  penstock try acme.com 345
  penstock try acme.com https://acme.com/p/17 --item '{"url": "https://acme.com/p/17", "shop": 3}'"""
LONGEST_KEY, LONGEST_REASON, SHOWN = 60, 200, 20


def register(commands: Commands) -> None:
    parser = add_command(commands, "try", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="whose pipeline")
    parser.add_argument("target", metavar="URL|JOB", help="the address of a page, or a job")
    parser.add_argument("--step", metavar="STEP", help="begin with this page or candidate step")
    parser.add_argument("--item", metavar="JSON", help="what the first step is given")
    parser.add_argument(
        "--offline", action="store_true", help="send nothing: pages come from their snapshots"
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="no timeouts: for breakpoint() in a step, which stops here in this terminal",
    )
    add_private(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    item = _item(args.item)
    with opened(args) as project:
        tried = project.pages.try_(
            args.source,
            args.target,
            step=args.step,
            item=item,
            offline=args.offline,
            timeouts=not args.debug,
        )
    if args.json:
        args.out.json(tried.as_json())
    else:
        _tell(tried, args.out)
    if not tried.failed:
        return exits.DONE
    return exits.FAILED if tried.jobs[0] in tried.failed else exits.PARTIAL


def _item(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"--item is not JSON: {error}") from None


def _tell(tried: TriedView, out: Output) -> None:
    from penstock.cli.render.diffs import tell_changes, tell_totals

    out.line(f"item  {out.as_json(tried.item)}")
    for page in tried.pages:
        where = "its snapshot" if page.is_from_snapshot else "the network"
        status = page.status if page.status is not None else "no answer"
        out.line(f"page  {status}  {page.url}  {count(page.bytes, 'byte')} from {where}")
    out.line()
    jobs = [
        (
            job.stage,
            shortened_inside(job.key, LONGEST_KEY),
            job.state,
            shortened(job.reason, LONGEST_REASON),
        )
        for job in [
            *tried.jobs[:1],
            *[job for job in tried.jobs[1:] if job.state != "succeeded"][:SHOWN],
        ]
    ]
    out.table((column("stage", 0), "key", "state", "reason"), jobs)
    for job in tried.failed[:SHOWN]:
        for line in job.traceback.splitlines():
            out.line(f"  {line}")
    for rejection in tried.rejections[:SHOWN]:
        out.line(f"would reject ({rejection.code}): {rejection.reason}")
    for name, keys in tried.enqueued.items():
        out.line(f"would enqueue {count(len(keys), 'job')} of {name}: {', '.join(keys[:3])}")
    for note in tried.notes[:SHOWN]:
        out.line(f"note: {note}")
    for signal in sorted(set(tried.signals)):
        out.line(f"would raise the signal {signal}")
    out.line()
    tell_totals(out, tried.totals)
    tell_changes(out, tried.changes)
    if tried.is_cut:
        out.note("stopped after 1,000 jobs")
    out.note("nothing was written")
