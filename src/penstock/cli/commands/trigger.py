"""`penstock trigger serve`: signals over HTTP."""

from __future__ import annotations

import argparse

from penstock.cli import exits
from penstock.cli.commands.web import HOST, PORT, port_number
from penstock.cli.parser import Commands, add_command, add_verb

DESCRIPTION = "Let others raise signals over HTTP."
SERVE = """\
Listen for POST /signals/NAME, whose body (application/json) is the signal's data, and answer 202 with its
number: the same as `penstock signal NAME`. An Idempotency-Key header is its key, ?source=SOURCE the source it
is about. A request needs `Authorization: Bearer TOKEN`, with the token of `trigger: {token: ...}` in
penstock.yaml; without a token it listens on this machine's own addresses only. The runs are started by
`penstock up`.

`penstock web` has the same path, with the same token. New callers use it: POST /api/v1/signals/NAME with a
token of `penstock token create`."""
EXAMPLES = """\
  penstock trigger serve
  curl -X POST -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
       -d '{"day": "2026-11-15"}' http://127.0.0.1:8787/signals/prices.stale
  penstock trigger serve --host 0.0.0.0 --port 8787"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "trigger", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    serving = add_verb(verbs, "serve", "listen for signals", SERVE, EXAMPLES)
    serving.add_argument("--host", default=HOST, metavar="HOST", help=f"where to listen ({HOST})")
    serving.add_argument("--port", type=port_number, default=PORT, metavar="PORT", help=f"({PORT})")
    serving.set_defaults(run=serve)


def serve(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened
    from penstock.web.trigger import run_trigger

    with opened(args) as project:
        run_trigger(project, args.host, args.port, args.out.note)
    return exits.DONE
