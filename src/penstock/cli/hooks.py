"""`penstock hooks`: what the outside is told of runs that have ended, and what it has accepted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_reason,
    whole_number,
)
from penstock.cli.tables import column, key_column, whole
from penstock.cli.wording import duration, iso, local_time, shortened

if TYPE_CHECKING:
    from penstock.store.outbox import OutboxRow

DESCRIPTION = """\
What was to be told of runs that have ended (`hooks:` in penstock.yaml), the newest first: delivered, due,
failing (it is tried again), or given up. Deliveries are made by `penstock up`, `penstock run` and
`penstock scheduler`; what could not be delivered is delivered when one of them runs again."""
EXAMPLES = """\
  penstock hooks
  penstock hooks --undelivered --json
  penstock hooks retry 12 --reason "the receiver is mended\""""
RETRY = "Send one that has failed or was given up again now, with fresh attempts."
COLUMNS = (
    *(
        "delivery",
        key_column("hook", least=10),
        "run",
        column("source", 1),
        whole("ended", 3),
        "state",
    ),
    *(whole("attempts", 4), "since", whole("next", 3), "error"),
)
SHOWN = 50
LONGEST_ERROR = 100


def register(commands: Commands) -> None:
    parser = add_command(commands, "hooks", "what the outside is told", DESCRIPTION, EXAMPLES)
    parser.add_argument("--undelivered", action="store_true", help="only what is not accepted yet")
    add_limit(parser, SHOWN, "deliveries")
    add_json(parser)
    parser.set_defaults(run=show)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    retrying = add_command(verbs, "retry", "send one again", RETRY, "  penstock hooks retry 12")
    retrying.add_argument("outbox_id", type=whole_number, metavar="ID", help="the delivery")
    add_reason(retrying)
    retrying.set_defaults(run=retry)


def show(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened

    with opened(args) as project:
        limit = args.limit if args.limit is not None else 1_000_000
        rows = project.store.outbox(undelivered_only=args.undelivered, limit=limit)
        now = project.store.now()
    if args.json:
        args.out.json_list(_shape(row) for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row, now) for row in rows))
    else:
        args.out.line("nothing was to be told; `hooks:` in penstock.yaml says who is told of what")
    return 0


def retry(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.project import default_actor

    with opened(args) as project:
        is_due = project.store.retry_outbox(args.outbox_id, default_actor(), args.reason)
    said = "is sent again" if is_due else "was delivered already"
    args.out.line(f"delivery {args.outbox_id} {said}")
    return 0


def _line(row: OutboxRow, now: float) -> tuple[object, ...]:
    return (
        row.id,
        row.hook,
        row.run_id,
        row.source or "",
        row.run_state,
        row.state,
        row.attempts,
        local_time(row.created_at),
        "" if row.due_at is None else f"in {duration(max(0.0, row.due_at - now))}",
        shortened(row.error, LONGEST_ERROR),
    )


def _shape(row: OutboxRow) -> dict[str, Any]:
    return {
        "delivery": row.id,
        "hook": row.hook,
        "run": row.run_id,
        "source": row.source,
        "run_state": row.run_state,
        "state": row.state,
        "attempts": row.attempts,
        "created_at": iso(row.created_at),
        "due_at": iso(row.due_at),
        "delivered_at": iso(row.delivered_at),
        "error": row.error,
    }
