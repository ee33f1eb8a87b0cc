"""`penstock hooks`: what the outside is told of runs that have ended, and what it has accepted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_reason,
    add_verb,
    whole_number,
)
from penstock.cli.render.tables import column, key_column, whole
from penstock.cli.render.wording import duration, local_time, shortened

if TYPE_CHECKING:
    from penstock.app.views.hooks import HookDeliveryView

DESCRIPTION = """\
Webhook deliveries about runs that have ended (`hooks:` in penstock.yaml), the newest first: delivered, due,
failing (it will be retried), or given up. `penstock up`, `penstock run` and `penstock scheduler` deliver;
what is still undelivered waits until one of them runs again."""
EXAMPLES = """\
  penstock hooks
  penstock hooks --undelivered --json
  penstock hooks retry 12 --reason "the receiver is fixed\""""
RETRY = "Send a delivery that failed or was given up again now, with all its attempts."
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
    parser = add_command(commands, "hooks", DESCRIPTION, EXAMPLES)
    parser.add_argument("--undelivered", action="store_true", help="only what is not accepted yet")
    add_limit(parser, SHOWN, "deliveries")
    add_json(parser)
    parser.set_defaults(run=show)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    retrying = add_verb(verbs, "retry", "send one again", RETRY, "  penstock hooks retry 12")
    retrying.add_argument("outbox_id", type=whole_number, metavar="ID", help="the delivery")
    add_reason(retrying)
    retrying.set_defaults(run=retry)


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows = list(project.hooks.each(undelivered=args.undelivered, limit=args.limit))
        now = project.now()
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row, now) for row in rows))
    else:
        args.out.line("No deliveries yet. Configure webhooks under `hooks:` in penstock.yaml")
    return 0


def retry(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        is_due = project.hooks.redeliver(args.outbox_id, reason=args.reason)
    said = "is sent again" if is_due else "was delivered already"
    args.out.line(f"delivery {args.outbox_id} {said}")
    return 0


def _line(row: HookDeliveryView, now: float) -> tuple[object, ...]:
    return (
        row.id,
        row.hook,
        row.run_id or "",
        row.source or "",
        row.run_state,
        row.state,
        row.attempts,
        local_time(row.created_at),
        "" if row.due_at is None else f"in {duration(max(0.0, row.due_at - now))}",
        shortened(row.error, LONGEST_ERROR),
    )
