"""`penstock web`: the API and the dashboard."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command

if TYPE_CHECKING:
    from penstock.app import Project

DESCRIPTION = """\
Serve the HTTP API (/api/v1) and the dashboard. On this machine, it prints a link that logs in one browser,
once. Programs and other people send a token; `penstock token create` makes one.

From other machines it is reached over TLS: with --tls-certificate and --tls-key, or behind a proxy that has a
certificate; then --origin names the address that people type. The runs are performed by `penstock up`."""
EXAMPLES = """\
  penstock web
  penstock web --port 9000
  penstock web --host 0.0.0.0 --tls-certificate cert.pem --tls-key key.pem
  penstock web --origin https://penstock.example.com     behind a proxy"""
HOST, PORT = "127.0.0.1", 8787


def register(commands: Commands) -> None:
    parser = add_command(commands, "web", DESCRIPTION, EXAMPLES)
    parser.add_argument("--host", default=HOST, metavar="HOST", help=f"where to listen ({HOST})")
    parser.add_argument("--port", type=port_number, default=PORT, metavar="PORT", help=f"({PORT})")
    add_web_options(parser)
    # For `penstock up --web`: end when the process that holds the other end of stdin does.
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--no-link", action="store_true", help="print no login link: for logs that others read"
    )
    parser.set_defaults(run=run)


def add_web_options(parser: argparse.ArgumentParser, prefix: str = "--") -> None:
    parser.add_argument(
        f"{prefix}origin",
        action="append",
        default=[],
        metavar="URL",
        help="another address it is reached under, such as https://penstock.example.com; repeatable",
    )
    parser.add_argument(
        f"{prefix}tls-certificate", type=Path, metavar="FILE", help="certificate chain, PEM"
    )
    parser.add_argument(f"{prefix}tls-key", type=Path, metavar="FILE", help="its private key, PEM")
    parser.add_argument(
        f"{prefix}mcp-allow",
        choices=("viewer", "operator", "admin"),
        default="viewer",
        help="what MCP clients may do at most, beside the role of their token (viewer: only look)",
    )


def port_number(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.commands.mcp import refuse_missing
    from penstock.cli.lookup import opened
    from penstock.web.run import run_web
    from penstock.web.settings import settings_of

    if args.mcp_allow != "viewer":
        refuse_missing("--mcp-allow")
    with opened(args) as project:
        settings = settings_of(
            args.host,
            args.port,
            args.origin,
            args.tls_certificate,
            args.tls_key,
            args.mcp_allow,
        )
        parent = sys.stdin.fileno() if args.beside else None
        run_web(project, settings, args.out.note, has_link=not args.no_link, parent=parent)
    return exits.DONE


def serve_here(project: Project, port: int, tell: Callable[[str], None]) -> None:
    """Serve a project on this machine until stopped, and tell where."""
    from penstock.web.run import run_web
    from penstock.web.settings import HOST, settings_of

    run_web(project, settings_of(HOST, port), tell)
