"""`penstock breakers` and `penstock breaker`: what is left alone because it fails, and an operator's hand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import Commands, add_command, add_json, add_reason, add_verb
from penstock.cli.render.tables import key_column, whole
from penstock.cli.render.wording import duration, local_time, shortened, until
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.breakers import BreakerView

LIST = """\
Circuit breakers of sources and hosts that have failed. Closed: requests are sent as usual. Open: nothing is
sent until the time shown. Half-open: a few jobs or requests at a time test it."""
LIST_EXAMPLES = """\
  penstock breakers
  penstock breakers --json"""
ACT = "Close an open breaker, or open one: nothing is sent to the source or host for a while."
ACT_EXAMPLES = """\
  penstock breaker close acme.com --reason "they are back"
  penstock breaker open host:cdn.example.com --for 2h --reason "they are moving" """
CLOSE = "Send requests to a source or host as usual again, at once."
CLOSE_EXAMPLES = """\
  penstock breaker close acme.com --reason "they are back" """
OPEN = """\
Send nothing to a source or host for a while; then a few requests test it. Running attempts finish; queued
jobs wait and lose no try. To stop a source until you resume it, use `penstock pause`."""
OPEN_EXAMPLES = """\
  penstock breaker open acme.com --for 2h --reason "they are moving" """
COLUMNS = (
    *("what", key_column("name", least=16), "state", "since", whole("tried", 4), whole("trips", 6)),
    *(whole("well", 6), whole("failed", 6), "why"),
)
REASON = 80


def register(commands: Commands) -> None:
    listing = add_command(commands, "breakers", LIST, LIST_EXAMPLES)
    add_json(listing)
    listing.set_defaults(run=run)
    acting = add_command(commands, "breaker", ACT, ACT_EXAMPLES)
    verbs = acting.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    closing = add_verb(verbs, "close", "send requests again", CLOSE, CLOSE_EXAMPLES)
    closing.set_defaults(run=close)
    opening = add_verb(verbs, "open", "send nothing for a while", OPEN, OPEN_EXAMPLES)
    opening.add_argument(
        "--for", dest="open_for", default="1h", metavar="TIME", help="how long, as 30m or 2h (1h)"
    )
    add_yes(opening)
    opening.set_defaults(run=open_one)
    for parser in (closing, opening):
        parser.add_argument(
            "name", metavar="SOURCE|HOST", help="a source, or a host as `breakers` shows it"
        )
        add_reason(parser)
        add_json(parser)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows = list(project.breakers.each())
        now = project.now()
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_row(row, now) for row in rows))
    else:
        args.out.line("nothing has failed so far: there are no breakers")
    return 0


def close(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        key = project.breakers.key(args.name)
        is_new = project.breakers.close(args.name, reason=args.reason)
    if args.json:
        args.out.json({"breaker": key, "state": "closed", "is_new": is_new})
    else:
        args.out.line(f"{key} is closed" if is_new else f"{key} was not open")
    return 0


def open_one(args: argparse.Namespace) -> int:
    from penstock.app.moments import length
    from penstock.cli.lookup import opened

    for_s = length("--for", args.open_for)
    if for_s < 1:
        raise UsageError("--for: a breaker is open for at least 1s")
    with opened(args) as project:
        key = project.breakers.key(args.name)
        name = key.removeprefix("source:")
        confirm(args, f"Send nothing to {key} for {duration(for_s)}?")
        is_new = project.breakers.open(args.name, for_s, reason=args.reason)
    if args.json:
        args.out.json({"breaker": key, "state": "open", "is_new": is_new})
    else:
        args.out.line(f"{key} is open for {duration(for_s)}; penstock breaker close {name}")
    return 0


def words(row: BreakerView, now: float) -> str:
    """Why a source or host is not asked as usual."""
    if row.state == "open":
        return f"breaker open, tried {until(row.opens_at or now, now)}: {row.reason}"
    return f"breaker half-open, tried by {max(1, row.ramp or 1)} at a time: {row.reason}"


def _row(row: BreakerView, now: float) -> tuple[object, ...]:
    tried = "" if row.opens_at is None else until(row.opens_at, now)
    if row.state == "half-open":
        tried = f"now, {max(1, row.ramp or 1)} at a time"
    return (
        *(row.kind, row.name, row.state, local_time(row.since), tried, row.trips),
        *(row.well, row.failed, shortened(row.reason, REASON)),
    )
