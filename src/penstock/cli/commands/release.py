"""`penstock release`: what an environment runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import Commands, add_command, add_json, add_limit, add_reason, add_verb
from penstock.cli.render.tables import column, key_column, whole
from penstock.cli.render.wording import count, local_time
from penstock.errors import Refused, UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.releases import (
        DifferenceView,
        ReleaseActView,
        ReleaseMoveView,
        ReleaseView,
    )

DESCRIPTION = """\
A release is what an environment runs: configuration, code, schemas and versions, named by the hash of its
content. Secrets are never in it: only the names of the variables. See docs/releases.md."""
CREATE = """\
Make a release of this folder as it is now, and let the environment run it. The same content is the same
release: making it again changes nothing."""
PROMOTE = """\
Let an environment run the release that another one runs: exactly what was tested there. Refused if workers
there run something else, or if `promotion:` asks for more. Done twice, it changes nothing."""
ROLLBACK = """\
Let the environment run the release before again, or RELEASE, which it has run before."""
FETCH = """\
Copy a release of another environment here, to try it. `penstock shadow` and `penstock canary` do that with
--from. Copying a release does not run it. Without RELEASE, the one that the other environment runs."""
APPROVE = """\
Approve a release for an environment whose `promotion:` asks for approvals. Each person counts once; the
promotion uses the approvals up."""
DIFF = """\
What differs between two releases, part by part and key by key. Without arguments: between what the
environment runs and this folder; with --from, between that and what another environment runs."""
CHECKOUT = """\
Write the files of a release into this folder, or into --into FOLDER: what the environment runs, unless you
name another. Files that are no part of the release stay as they are."""
SHOW = "What a release is made of; without RELEASE, the one that the environment runs."
HISTORY = "How releases came into this environment, the newest first, and who brought them."
EXAMPLES = """\
  penstock --env staging release create --reason "new prices"
  penstock release promote --from staging --to production --reason "tested on monday" --yes
  penstock --env production release rollback --reason "prices are wrong" --yes
  penstock release diff --from staging --to production
  penstock release history --json"""
SHOWN = 50
ID_SHOWN = 12
MOST_NAMED = 3
DIFF_COLUMNS = (
    "what",
    "change",
    key_column("name", least=12),
    column("before", 2),
    column("after", 1),
)
HISTORY_COLUMNS = (
    *(whole("at", 3), "act", key_column("release", least=12), "before", "from"),
    *(column("by", 2), column("reason", 1)),
)


def register(commands: Commands) -> None:
    parser = add_command(commands, "release", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    creating = add_verb(
        verbs, "create", "make one of this folder", CREATE, EXAMPLES.splitlines()[0]
    )
    add_reason(creating)
    creating.set_defaults(run=create)
    showing = add_verb(verbs, "show", "what is in one", SHOW, "  penstock release show")
    showing.add_argument("release", nargs="?", metavar="RELEASE", help="id, or its beginning")
    showing.set_defaults(run=show)
    listing = add_verb(
        verbs, "history", "what ran here, and when", HISTORY, "  penstock release history --json"
    )
    add_limit(listing, SHOWN, "lines")
    listing.set_defaults(run=history)
    for each in (creating, showing, listing, *_moving(verbs), *_comparing(verbs)):
        add_json(each)


def _moving(verbs: Commands) -> list[argparse.ArgumentParser]:
    lines = EXAMPLES.splitlines()
    promoting = add_verb(verbs, "promote", "from one environment to another", PROMOTE, lines[1])
    _add_release(promoting)
    _add_way(promoting, is_required=True)
    promoting.set_defaults(run=promote)
    fetching = add_verb(
        verbs, "fetch", "copy one here, to try it", FETCH, "  penstock release fetch --from staging"
    )
    _add_release(fetching)
    _add_way(fetching, is_required=True)
    fetching.set_defaults(run=fetch)
    rolling = add_verb(verbs, "rollback", "run the one before again", ROLLBACK, lines[2])
    _add_release(rolling)
    rolling.set_defaults(run=rollback)
    approving = add_verb(
        verbs, "approve", "agree to a promotion", APPROVE, "  penstock release approve 49348c0861fd"
    )
    approving.add_argument("release", metavar="RELEASE", help="id, or its beginning")
    approving.add_argument("--to", metavar="ENV", help="environment that it is for (--env)")
    approving.set_defaults(run=approve)
    for each in (promoting, fetching, rolling, approving):
        add_reason(each)
    for each in (promoting, rolling):
        add_yes(each)
    return [promoting, fetching, rolling, approving]


def _comparing(verbs: Commands) -> list[argparse.ArgumentParser]:
    comparing = add_verb(verbs, "diff", "what differs", DIFF, EXAMPLES.splitlines()[3])
    comparing.add_argument("before", nargs="?", metavar="BEFORE", help="a release (what runs)")
    comparing.add_argument("after", nargs="?", metavar="AFTER", help="another (this folder)")
    _add_way(comparing, is_required=False)
    comparing.set_defaults(run=diff)
    fetching = add_verb(
        verbs, "checkout", "write its files", CHECKOUT, "  penstock release checkout --yes"
    )
    _add_release(fetching)
    fetching.add_argument("--into", metavar="FOLDER", help="folder to write to (this project's)")
    add_yes(fetching)
    fetching.set_defaults(run=checkout)
    return [comparing, fetching]


def _add_release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", nargs="?", metavar="RELEASE", help="id, or its beginning")


def _add_way(parser: argparse.ArgumentParser, *, is_required: bool) -> None:
    parser.add_argument(
        "--from", dest="source", metavar="ENV", required=is_required, help="environment it runs in"
    )
    parser.add_argument("--to", metavar="ENV", help="environment it is for (--env)")


def create(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        made = project.releases.create(reason=args.reason)
    _tell_move(made, args)
    return exits.DONE


def _tell_move(made: ReleaseMoveView, args: argparse.Namespace) -> None:
    if args.json:
        args.out.json(made.as_json())
        return
    state = "now" if made.is_new else "already"
    args.out.line(f"the release of {made.environment} is {made.release[:ID_SHOWN]} {state}")
    for note in made.notes:
        args.out.note(note)


def promote(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    args.env = args.to or args.env
    with opened(args) as project:
        given = {"release": args.release, "reason": args.reason}
        found = project.releases.promote(args.source, **given, dry_run=True)
        if found.is_new:
            what = f"release {found.release[:ID_SHOWN]} from {args.source} to {found.environment}"
            confirm(args, f"Promote {what}?")
            found = project.releases.promote(args.source, **given)
    _tell_move(found, args)
    return exits.DONE


def fetch(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    args.env = args.to or args.env
    with opened(args) as project:
        found = project.releases.fetch(args.source, args.release, reason=args.reason)
    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    state = "is here now" if found.is_new else "was here already"
    args.out.line(f"release {found.release[:ID_SHOWN]} {state}, from {found.from_environment}")
    return exits.DONE


def release_of(project: Project, args: argparse.Namespace, *, copies: bool = True) -> str:
    """The release that is to be tried here: with --from ENV, copied from there if it is not here yet."""
    if args.source_env is None:
        if args.release is None:
            raise UsageError("which release? --release R, or --from ENV for what that one runs")
        return str(args.release)
    asked = {"release": args.release, "reason": args.reason}
    found = project.releases.fetch(args.source_env, **asked, dry_run=not copies)
    if found.is_new and not copies:
        raise Refused(
            f"release {found.release[:ID_SHOWN]} is not here yet, and a dry run copies nothing",
            f"penstock release fetch --from {args.source_env}",
        )
    return found.release


def add_from(parser: argparse.ArgumentParser) -> None:
    """For what tries a release: where to take it from."""
    parser.add_argument(
        "--from", dest="source_env", metavar="ENV",
        help="copy the release from this environment; without --release, what that one runs",
    )  # fmt: skip


def rollback(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.releases.rollback(args.release, reason=args.reason, dry_run=True)
        if found.is_new:
            to = found.release[:ID_SHOWN]
            confirm(args, f"Roll {found.environment} back to release {to}?")
            found = project.releases.rollback(found.release, reason=args.reason)
    _tell_move(found, args)
    return exits.DONE


def approve(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    args.env = args.to or args.env
    with opened(args) as project:
        found = project.releases.approve(args.release, reason=args.reason)
    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    who = ", ".join(each.actor for each in found.approvals)
    again = "" if found.is_new else "; you had approved it already"
    args.out.line(
        f"release {found.release[:ID_SHOWN]} has {count(len(found.approvals), 'approval')} of "
        f"{found.needed} for {found.environment}: {who}{again}"
    )
    return exits.DONE


def diff(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    args.env = args.to or args.env
    with opened(args) as project:
        found = project.releases.diff(args.before, args.after, source=args.source)
    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    out = args.out
    if found.is_same:
        out.line(f"No difference for {found.environment}")
    else:
        out.table(DIFF_COLUMNS, map(_difference, found.differences))
    return exits.DONE


def _difference(found: DifferenceView) -> tuple[object, ...]:
    sides = (found.before, found.after)
    if found.what not in ("configuration", "penstock", "connectors"):
        sides = (found.before[:ID_SHOWN], found.after[:ID_SHOWN])
    return (found.what.replace("_", " "), found.change, found.name, *sides)


def checkout(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.releases.checkout(args.release, args.into, dry_run=True)
        if found.overwrites:
            names = ", ".join(found.overwrites[:MOST_NAMED])
            confirm(args, f"Overwrite {count(len(found.overwrites), 'file')} ({names})?")
        if found.overwrites or found.adds:
            project.releases.checkout(args.release, args.into)
    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    written = count(len(found.overwrites) + len(found.adds), "file")
    args.out.line(
        f"{found.folder} has the files of release {found.release[:ID_SHOWN]}: {written} written"
    )
    return exits.DONE


def show(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.releases.get(args.release)
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell(found, args)
    return exits.DONE


def _tell(found: ReleaseView, args: argparse.Namespace) -> None:
    out = args.out
    state = f", the release of {found.environment}" if found.is_running else ""
    out.line(f"release {found.id}{state}")
    out.line(
        f"made in {found.made_in} on {local_time(found.created_at)} by {found.actor}: {found.reason}"
    )
    out.line(f"Penstock {found.penstock}; for {', '.join(found.environments)}")
    for what in ("files", "pipelines", "collections", "connectors", "site_schemas"):
        parts = getattr(found, what)
        if parts:
            out.line(f"{what.replace('_', ' ')}:")
            for name, value in parts.items():
                out.line(f"  {name}  {value[:ID_SHOWN] if what != 'connectors' else value}")
    if found.variables:
        out.line(f"variables: {', '.join(found.variables)}")
    for each in found.masked:
        out.line(f"left out: {each}")
    if found.approvals:
        who = ", ".join(each.actor for each in found.approvals)
        out.line(f"{count(len(found.approvals), 'approval')}: {who}")


def history(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        rows = list(project.releases.each(limit=args.limit))
    if args.json:
        args.out.json_list(row.as_json() for row in rows)
    elif rows:
        args.out.table(HISTORY_COLUMNS, map(_line, rows))
    else:
        args.out.line("No release yet. Make one: penstock release create --reason WHY")
    return exits.DONE


def _line(row: ReleaseActView) -> tuple[object, ...]:
    before = row.before[:ID_SHOWN] if row.before else ""
    return (
        *(local_time(row.at), row.act, row.release[:ID_SHOWN], before, row.from_environment or ""),
        *(row.actor, row.reason),
    )
