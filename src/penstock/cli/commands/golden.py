"""`penstock golden`: pages with approved records as files, which new extraction code is checked against."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, add_private, add_verb, whole_number
from penstock.cli.render.output import Output
from penstock.cli.render.tables import key_column, text, whole
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app.views.golden import GoldenCheckedView, GoldenRecordedView

DESCRIPTION = """\
Keep stored pages and the records that were approved for them as files in your repository, and check
today's code against them: in CI, offline, without the database. `pytest` collects the same corpora."""
EXAMPLES = """\
  penstock golden record acme.com
  penstock golden check
  penstock golden check acme.com --update
  penstock golden list"""
RECORD = """\
Put stored pages of a source into golden/SOURCE, with the records that today's code makes of them. Pages
of every kind (step, outcome, part of the site) are sampled. A page that the code fails on, or that holds a
secret of the project, is left out and named. Look at records.jsonl before you commit it: from then on it is
what is right.

Exit codes: 0 recorded, 3 some pages were left out, 7 there is a corpus already, or the source is private."""
RECORD_EXAMPLES = """\
  penstock golden record acme.com
  penstock golden record acme.com --pages 50 --seed 7
  penstock golden record acme.com --url https://acme.com/p/17 --add
  penstock golden record acme.com --run 12 --replace"""
CHECK = """\
Run today's page and candidate steps on the stored pages, and compare records, rejects, skips and enqueued
pages with what was approved. Nothing is sent: a request that is not in the corpus is an error that names its
address. Neither the project's database nor its variables are needed.

Exit codes: 0 nothing differs, 2 there is no corpus or one of its files was changed, 4 something differs or
failed."""
CHECK_EXAMPLES = """\
  penstock golden check
  penstock golden check acme.com
  penstock golden check acme.com --update
  penstock golden check --json"""
SHOWN = 20


def register(commands: Commands) -> None:
    parser = add_command(commands, "golden", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    record = add_verb(verbs, "record", "make a corpus of stored pages", RECORD, RECORD_EXAMPLES)
    record.add_argument("source", metavar="SOURCE", help="whose pages")
    record.add_argument(
        "--pages", type=whole_number, default=20, metavar="N", help="sample N pages (20)"
    )
    record.add_argument("--seed", type=int, default=1, metavar="N", help="random seed (1)")
    record.add_argument(
        "--run", type=whole_number, dest="run_id", metavar="RUN", help="of this run"
    )
    record.add_argument(
        "--url", action="append", default=[], metavar="URL", help="this page; repeatable"
    )
    there = record.add_mutually_exclusive_group()
    there.add_argument("--add", action="store_true", help="add to the corpus that is there")
    there.add_argument("--replace", action="store_true", help="replace the corpus that is there")
    _add_place(record)
    record.set_defaults(run=_record)

    check = add_verb(verbs, "check", "check today's code against it", CHECK, CHECK_EXAMPLES)
    check.add_argument("source", metavar="SOURCE", nargs="?", help="only this source's (all)")
    check.add_argument("--update", action="store_true", help="approve what differs")
    _add_place(check)
    check.set_defaults(run=_check)

    listed = add_verb(verbs, "list", "list the corpora", "List the corpora.", EXAMPLES)
    _add_place(listed)
    listed.set_defaults(run=_list)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", metavar="DIR", help="folder of the corpora (golden, beside penstock.yaml)"
    )
    add_private(parser)
    add_json(parser)


def _folder(args: argparse.Namespace) -> str | None:
    return str(Path(args.dir).absolute()) if args.dir else None


def _record(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.golden.record(
            args.source,
            pages=args.pages,
            seed=args.seed,
            run=args.run_id,
            urls=args.url,
            folder=_folder(args),
            add=args.add,
            replace=args.replace,
            include_private=args.include_private,
        )
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell_recorded(found, args.out)
    return exits.PARTIAL if found.left_out else exits.DONE


def _tell_recorded(found: GoldenRecordedView, out: Output) -> None:
    pages, records = count(found.cases, "page"), count(found.records, "record")
    out.line(f"{found.folder}: {pages}, {records}, seed {found.seed}")
    for each in found.left_out[:SHOWN]:
        out.line(f"left out: {each.url}: {each.reason}")
    if found.cases:
        out.note(
            "look at records.jsonl, then commit the folder; `penstock golden check` checks code against it"
        )
    else:
        out.note("nothing was written")


def _check(args: argparse.Namespace) -> int:
    from penstock.app.golden.offline import offline_project

    with offline_project(args.project, args.env) as project:
        args.out.secrets = project.settings.secrets
        project.includes_private = args.include_private
        found = project.golden.check(args.source, folder=_folder(args), update=args.update)
    if args.json:
        args.out.json([each.as_json() for each in found])
    else:
        for each in found:
            _tell_checked(each, args.out)
    is_well = all(not each.failed and (each.updated or not each.differs) for each in found)
    return exits.DONE if is_well else exits.FAILED


def _tell_checked(found: GoldenCheckedView, out: Output) -> None:
    from penstock.app.golden.report import case_lines

    for case in found.details[:SHOWN]:
        for line in case_lines(case):
            out.line(line)
        out.line()
    if len(found.details) > SHOWN:
        out.line(f"and {count(len(found.details) - SHOWN, 'more page')}: --json has them all")
    approved = "approved" if found.updated else "differ"
    out.line(
        f"{found.source}: {found.same} of {count(found.cases, 'page')} the same, "
        f"{found.differs} {approved}, {found.failed} failed"
    )
    if found.differs and not found.updated:
        out.note(f"if this is right: penstock golden check {found.source} --update")


COLUMNS = (
    key_column("source", 0), whole("pages"), whole("records"), text("private", 1, 7),
    text("folder", 2, 12),
)  # fmt: skip


def _list(args: argparse.Namespace) -> int:
    from penstock.app.golden.offline import offline_project

    with offline_project(args.project, args.env) as project:
        found = project.golden.list(folder=_folder(args))
    if args.json:
        args.out.json_list(each.as_json() for each in found)
        return exits.DONE
    if not found:
        args.out.line("there is no golden corpus; `penstock golden record SOURCE` makes one")
    rows = [
        (each.source, each.cases, each.records, "yes" if each.private else "", each.folder)
        for each in found
    ]
    args.out.table(COLUMNS, rows)
    return exits.DONE
