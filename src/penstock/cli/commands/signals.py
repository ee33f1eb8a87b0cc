"""`penstock signal` raises one; `penstock signals` shows those that were raised, and what they started."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import Commands, add_command, add_json, add_limit, add_private
from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import local_time, shortened
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.signals import SignalDeliveryView, SignalView

RAISE = """\
Raise a signal. Each schedule that waits for it (`schedule: {signal: NAME}`) starts one run, whose steps find
it as ctx.run.signal. The signal is stored when this command returns; `penstock up` or `penstock scheduler`
delivers it, now or when one starts. A key makes it idempotent: the same key raises nothing again."""
RAISE_EXAMPLES = """\
  penstock signal prices.stale
  penstock signal catalogue.ready --data '{"day": "2026-11-15"}' --key 2026-11-15
  penstock signal quality.checked --source acme.com"""
LIST = """\
Signals that steps, the engine, files and operators have raised, the newest first, with the runs that each
started or is queued for, and what was skipped and why."""
LIST_EXAMPLES = """\
  penstock signals
  penstock signals --name run.failed --limit 10
  penstock signals --json"""
COLUMNS = (
    *("signal", key_column("name", least=14), column("source", 2), column("run", 3)),
    *(whole("raised", 4), text("by", 6), "data", text("delivered to", 1, 20)),
)
SHOWN = 50
LONGEST_DATA = 60


def register(commands: Commands) -> None:
    raising = add_command(commands, "signal", RAISE, RAISE_EXAMPLES)
    raising.add_argument("name", metavar="NAME", help="the signal")
    raising.add_argument("--data", metavar="JSON", help="data for the runs it starts")
    raising.add_argument("--key", metavar="KEY", help="raise it once under this key")
    raising.add_argument("--source", metavar="SOURCE", help="the source that it is about")
    add_json(raising)
    raising.set_defaults(run=raise_one)
    listing = add_command(commands, "signals", LIST, LIST_EXAMPLES)
    listing.add_argument("--name", metavar="NAME", help="only those of this name")
    add_limit(listing, SHOWN, "signals")
    add_private(listing)
    add_json(listing)
    listing.set_defaults(run=show)


def raise_one(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    data = _data(args.data)
    with opened(args) as project:
        raised = project.signals.raise_(args.name, data, key=args.key, source=args.source)
    if args.json:
        args.out.json(raised.as_json())
        return 0
    if not raised.is_new:
        args.out.line(f"signal {raised.id} was raised before: {args.name}, key {args.key}")
        return 0
    who = ", ".join(f"{each.source} ({each.schedule})" for each in raised.waiting)
    args.out.line(f"signal {raised.id}: {args.name}")
    args.out.note(f"waited for by {who}" if who else "no schedule waits for it")
    return 0


def _data(text: str | None) -> Any:
    import msgspec

    if text is None:
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError(
            f"--data is not JSON: {error}", """--data '{"day": "2026-11-15"}'"""
        ) from None


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows = list(project.signals.each(args.name, limit=args.limit))
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, [_line(row) for row in rows])
    else:
        args.out.line("nothing was signalled")
    return 0


def _line(row: SignalView) -> tuple[object, ...]:
    return (
        row.id,
        row.name,
        row.source or "",
        row.run_id or "",
        local_time(row.at),
        row.actor,
        "" if row.data is None else shortened(_json(row.data), LONGEST_DATA),
        "; ".join(_words(each) for each in row.deliveries),
    )


def _json(data: Any) -> str:
    import msgspec

    return msgspec.json.encode(data).decode()


def _words(each: SignalDeliveryView) -> str:
    match each.state:
        case "started":
            what = f"run {each.run_id}"
        case "joined":
            what = f"joined signal {each.joins}"
        case state:
            what = f"{state}: {each.reason}" if each.reason else state
    return f"{each.source} ({each.schedule}): {what}"
