"""`penstock audit`: is the journal what it was when it was written?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, add_verb
from penstock.cli.render.tables import text, whole
from penstock.cli.render.wording import count, local_time
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.audit import HeadView, VerificationView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
The journal is a hash chain. Each seal holds a digest of its events and the hash of the seal before it, so
`audit verify` finds an event that somebody changed, removed, added or reordered in the database."""
EXAMPLES = """\
  penstock audit verify
  penstock audit head --anchor /mnt/elsewhere/penstock.anchors
  penstock audit verify --anchor /mnt/elsewhere/penstock.anchors
  penstock audit export --output audit.jsonl"""
VERIFY = """\
Compare every event with its seal and every seal with the one before it, and name what was changed, removed
or added. With --anchor, also check that every head in that file is still in the chain: only this detects a
chain that was cut off or rebuilt. Exits with 5 if anything is wrong."""
HEAD = """\
Show the last seal. With --anchor, seal everything so far and append the head to that file. Keep the file
where people who can write to the database can't write."""
EXPORT = """\
Write the whole chain as JSON lines: each event as it was hashed, each seal after its events. The SHA-256 of
an event's line is the hash that its seal covers, so you can check the file without Penstock."""


def register(commands: Commands) -> None:
    parser = add_command(commands, "audit", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    verifying = add_verb(verbs, "verify", "find changes", VERIFY, "  penstock audit verify")
    verifying.add_argument(
        "--anchor", type=Path, metavar="FILE", help="file of heads that must be in the chain"
    )
    add_json(verifying)
    verifying.set_defaults(run=verify)
    heading = add_verb(verbs, "head", "the last seal", HEAD, "  penstock audit head --json")
    heading.add_argument("--anchor", type=Path, metavar="FILE", help="add the head to this file")
    add_json(heading)
    heading.set_defaults(run=head)
    exporting = add_verb(
        verbs, "export", "as lines of JSON", EXPORT, "  penstock audit export --output audit.jsonl"
    )
    exporting.add_argument("--output", type=Path, metavar="FILE", help="file to write (stdout)")
    exporting.set_defaults(run=export)


def verify(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.audit.verify(
            anchor=args.anchor, on_progress=lambda events: args.out.note(count(events, "event"))
        )
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell(found, args.out)
    return exits.DONE if found.is_sound else exits.STORE


def _tell(found: VerificationView, out: Output) -> None:
    _tell_head(found.head, out)
    out.fields(
        [
            ("compared", f"{count(found.events, 'event')} with {count(found.seals, 'seal')}"),
            ("anchors", found.anchors or None),
            ("erased", _erased(found)),
            ("retention", _gone(found)),
        ]
    )
    if found.findings:
        out.line()
        rows = [
            (each.what.replace("_", " "), _text(each.event), _text(each.seal), each.text)
            for each in found.findings
        ]
        out.table(("wrong", whole("event"), whole("seal"), text("what", 1, 20)), rows)
        return
    out.line("sound: no sealed event was changed, removed or added")
    if not found.anchors:
        out.line("A chain that was rebuilt as a whole is detected only with --anchor FILE.")


def _erased(found: VerificationView) -> str | None:
    return f"data of {count(found.erased, 'event')}, by forget" if found.erased else None


def _gone(found: VerificationView) -> str | None:
    if not found.pruned_events:
        return None
    until = "" if found.pruned_until is None else f" until {local_time(found.pruned_until)}"
    return f"{count(found.pruned_events, 'event')}{until} dropped; their seals remain"


def head(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.audit.head(anchor=args.anchor)
    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    _tell_head(found, args.out)
    if args.anchor is not None and found.seal:
        args.out.line(f"anchored in {args.anchor}")
    return exits.DONE


def _tell_head(found: HeadView, out: Output) -> None:
    if not found.seal:
        out.line(f"No seal yet; {count(found.unsealed, 'event')} to seal. The leader seals them.")
        return
    out.fields(
        [
            ("seal", f"{found.seal} of {local_time(found.at)}, up to event {found.last_event}"),
            ("hash", found.hash),
            ("not sealed yet", count(found.unsealed, "event") if found.unsealed else None),
        ]
    )


def export(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        lines = project.audit.export()
        if args.output is None:
            for line in lines:
                args.out.stdout.write(line + "\n")
            return exits.DONE
        try:
            with args.output.open("w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
        except OSError as error:
            raise UsageError(
                f"can't write {args.output}: {error.strerror}",
                "name a file in a folder that you may write to",
            ) from error
    args.out.note(f"written to {args.output}")
    return exits.DONE


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
