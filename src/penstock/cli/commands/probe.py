"""`penstock probe`: can a source be read, and what would come?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json

if TYPE_CHECKING:
    from penstock.app.views.connectors import ProbeView, SampleView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Look at the place of a source now: can it be reached, are the credentials accepted, and which records would
come first? Nothing is written: no run, record, snapshot or checkpoint. Exit code 4 if it can't be read. To
let a degraded source recover, use `penstock run SOURCE --kind probe`, which is a run with a verdict."""
EXAMPLES = """\
  penstock probe notes
  penstock probe notes --records 10 --json"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "probe", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="the source")
    parser.add_argument(
        "--records", type=int, default=3, metavar="N", help="how many to show (default: 3)"
    )
    parser.add_argument(
        "--include-private", action="store_true", help="show records of a private source too"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.sources.probe(
            args.source, args.records, include_private=args.include_private
        )
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell(found, args.out)
    return exits.FAILED if found.verdict == "failed" else exits.DONE


def _tell(found: ProbeView, out: Output) -> None:
    read_by = f" (connector {found.connector})" if found.connector else ""
    out.line(f"{found.source}{read_by}: {_verdict(found)}")
    tell_facts(found.facts, out)
    for note in found.notes[:20]:
        out.line(f"  note: {note}")
    if found.is_hidden:
        out.note(f"{found.source} is private: --include-private shows its records")
    elif found.samples:
        out.line()
        tell_samples(found.samples, out)
    out.note("nothing was written")


def _verdict(found: ProbeView) -> str:
    problem = f"{found.kind}: {found.reason}" if found.kind else found.reason
    if found.verdict == "ok":
        return f"ok, but not all of it: {problem}" if found.reason else "ok"
    return f"failed, {problem}" if found.verdict == "failed" else "nothing is there"


def tell_facts(facts: dict[str, Any], out: Output) -> None:
    """What a connector says of its place."""
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        out.line(f"  {name}: {text if isinstance(text, str) else out.as_json(text)}")


def tell_samples(samples: list[SampleView], out: Output) -> None:
    """The first documents, each with its beginning."""
    out.line("What would come:")
    for each in samples:
        out.line(f"  {each.key}  {each.title}".rstrip())
        out.line(f"      {each.text}")
