"""`penstock token`: who may use the API and the dashboard from elsewhere."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, add_limit, add_reason, add_verb
from penstock.cli.render.tables import key_column, whole
from penstock.cli.render.wording import local_time

if TYPE_CHECKING:
    from penstock.app.views.tokens import TokenView

DESCRIPTION = """\
Tokens let programs and people use the API and the dashboard of `penstock web`. A program sends
`Authorization: Bearer TOKEN`; a person pastes the token on the login page. Only a hash of it is stored."""
CREATE = """\
Make a token and print it, once: it can't be shown again. NAME is the actor of everything done with it;
without one it is made from the role. A viewer reads; an operator also runs, pauses, retries and releases; an
admin also undoes, discards, rewinds and revokes tokens."""
LIST = 'Tokens, newest first, without their texts. "used" is exact to a minute.'
REVOKE = "End a token and the browser sessions that it began, at once."
EXAMPLES = """\
  penstock token create ci --role operator --expires 90d
  penstock token create grafana --role viewer --expires never --json
  penstock token list
  penstock token revoke ci --reason "it was in a log\""""
ROLES = ("viewer", "operator", "admin")
NEVER = "never"
COLUMNS = (
    *(key_column("name", least=12), "role", "state", whole("expires", 2), whole("used", 3)),
    *(whole("prefix", 4), "created", "by"),
)
SHOWN = 50


def register(commands: Commands) -> None:
    parser = add_command(commands, "token", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    creating = add_verb(verbs, "create", "make a token", CREATE, EXAMPLES.splitlines()[0])
    creating.add_argument(
        "name", metavar="NAME", nargs="?", help="who or what it is for, such as ci"
    )
    creating.add_argument("--role", required=True, choices=ROLES, help="what it may do")
    creating.add_argument(
        "--expires", default="90d", metavar="TIME", help="how long it is valid, or never (90d)"
    )
    add_reason(creating)
    add_json(creating)
    creating.set_defaults(run=create)
    listing = add_verb(verbs, "list", "all tokens", LIST, "  penstock token list --json")
    add_limit(listing, SHOWN, "tokens")
    add_json(listing)
    listing.set_defaults(run=show_list)
    revoking = add_verb(verbs, "revoke", "end a token", REVOKE, "  penstock token revoke ci")
    revoking.add_argument("name", metavar="NAME", help="name of the token")
    add_reason(revoking)
    add_json(revoking)
    revoking.set_defaults(run=revoke)


def create(args: argparse.Namespace) -> int:
    from penstock.app.moments import length
    from penstock.cli.lookup import opened

    expires_in_s = None if args.expires == NEVER else length("--expires", args.expires)
    with opened(args) as project:
        made = project.tokens.create(
            args.name, args.role, expires_in_s=expires_in_s, reason=args.reason
        )
    if args.json:
        args.out.json(made.as_json())
        return exits.DONE
    args.out.line(made.text)
    until = "never expires" if made.expires_at is None else f"until {local_time(made.expires_at)}"
    args.out.note(f"token {made.name} ({made.role}, {until}); it is not shown again")
    return exits.DONE


def show_list(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows = list(project.tokens.each(limit=args.limit))
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(COLUMNS, (_line(row) for row in rows))
    else:
        args.out.line("No tokens yet. Make one: penstock token create NAME --role viewer")
    return exits.DONE


def _line(row: TokenView) -> tuple[object, ...]:
    return (
        *(row.name, row.role, row.state),
        NEVER if row.expires_at is None else local_time(row.expires_at),
        NEVER if row.used_at is None else local_time(row.used_at),
        *(row.prefix, local_time(row.created_at), row.created_by),
    )


def revoke(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        is_new = project.tokens.revoke(args.name, reason=args.reason)
    if args.json:
        args.out.json({"name": args.name, "state": "revoked", "is_new": is_new})
    else:
        args.out.line(f"token {args.name} {'is revoked' if is_new else 'was revoked already'}")
    return exits.DONE
