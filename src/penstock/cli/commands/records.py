"""`penstock records`: what was ingested, to read or to take elsewhere."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.cli.commands import records_export
from penstock.cli.parser import Commands, add_command, add_json, add_limit, whole_number
from penstock.cli.render.output import Output
from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import cut, local_time, shortened_inside
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.records import RecordView

DESCRIPTION = """\
The records of a collection, ordered by key; without COLLECTION, the list of collections. Each line of JSON
has key, data, score, source, run, version, updated_at. In CSV, the fields of data are columns, and text that
a spreadsheet would read as a formula starts with an apostrophe.

`penstock records export COLLECTION --to FILE` writes files with a manifest, also as Parquet or DuckDB, into
buckets, and only what has changed since the last time: penstock records export --help."""
EXAMPLES = """\
  penstock records
  penstock records product --limit 5
  penstock records product --format jsonl > products.jsonl
  penstock records product --format csv > products.csv
  penstock records product --source acme.com --since 2h
  penstock records product --run 12
  penstock records product --key A-17 --versions
  penstock records export product --to products.parquet"""
COLUMNS = (
    *("key", whole("score", 3), column("source", 4), column("run", 3)),
    *(whole("version", 4), "updated", text("data", 1)),
)
FORMATS = ("table", "jsonl", "csv")
TABLE_ROWS = 20
LONGEST_KEY, LONGEST_DATA = 200, 200


def register(commands: Commands) -> None:
    parser = add_command(commands, "records", DESCRIPTION, EXAMPLES)
    parser.add_argument("collection", nargs="?", metavar="COLLECTION", help="which records")
    parser.add_argument(
        "--format", choices=FORMATS, metavar="FORMAT", help="table (default), jsonl, csv"
    )
    parser.add_argument("--key", metavar="KEY", help="only the record with this key")
    parser.add_argument("--versions", action="store_true", help="with all its versions")
    parser.add_argument("--source", metavar="SOURCE", help="only what this source wrote last")
    parser.add_argument(
        "--run",
        dest="run_id",
        type=whole_number,
        metavar="RUN",
        help="only what this run wrote and no later run changed",
    )
    parser.add_argument("--since", metavar="WHEN", help="only what was written since 2h, or a date")
    parser.add_argument(
        "--include-private", action="store_true", help="also records of private sources"
    )
    add_limit(parser, None, f"records (all; as a table {TABLE_ROWS})")
    add_json(parser)
    parser.set_defaults(run=run)
    records_export.register(parser)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    _refuse_contradictions(args)
    with opened(args) as project:
        if args.collection is None:
            _tell_collections(project, args)
        else:
            held = project.records.require_collection(args.collection).records
            _tell_records(project, args, held)
            if project.settings.private_sources and not args.include_private:
                args.out.note(
                    "records of private sources are left out; --include-private shows them"
                )
    return 0


def _refuse_contradictions(args: argparse.Namespace) -> None:
    if args.versions and args.key is None:
        raise UsageError("--versions needs --key: whose versions?")
    if args.json and args.format:
        raise UsageError("--json and --format exclude each other")
    filters = (args.source, args.run_id, args.since)
    if args.key is not None and any(filters):
        raise UsageError("--key names one record; --source, --run and --since choose among many")
    if args.collection is None and (args.key is not None or args.format or any(filters)):
        raise UsageError("which COLLECTION?", "`penstock records` lists them")


def _tell_collections(project: Project, args: argparse.Namespace) -> None:
    held = project.records.collections()
    if args.json:
        args.out.json_list(each.as_json() for each in held)
    elif held:
        columns = (key_column("collection"), whole("records"))
        args.out.table(columns, ((each.collection, each.records) for each in held))
    else:
        args.out.line("no records yet; `penstock run SOURCE` brings some")


def _tell_records(project: Project, args: argparse.Namespace, held: int) -> None:
    from penstock.cli.render.csv_export import write_csv

    out: Output = args.out
    if args.json:
        out.json_list(each.as_json() for each in _chosen(project, args))
    elif args.format == "jsonl":
        for each in _chosen(project, args):
            out.json(each.as_json())
    elif args.format == "csv":
        write_csv(lambda: (each.as_json() for each in _chosen(project, args)), out)
    else:
        _tell_table(project, args, held)


def _tell_table(project: Project, args: argparse.Namespace, held: int) -> None:
    limit = args.limit or TABLE_ROWS
    rows = itertools.islice(_chosen(project, args), limit)
    shown = itertools.count()
    args.out.table(COLUMNS, (_line(row, args.out) for row, _ in zip(rows, shown, strict=False)))
    if args.source or args.run_id or args.since:
        if next(shown) >= limit:
            args.out.note(f"the first {limit:,}; --limit N shows more, --format jsonl or csv all")
        return
    if args.key is None and held > limit:
        args.out.note(f"{limit:,} of {held:,}; --limit N shows more, --format jsonl or csv all")


def _line(row: RecordView, out: Output) -> tuple[object, ...]:
    data = "(removed)" if row.is_removed else cut(out.as_json(row.data), LONGEST_DATA)
    return (
        *(shortened_inside(row.key, LONGEST_KEY), row.score, row.source, str(row.run), row.version),
        *(local_time(row.updated_at), data),
    )


def _chosen(project: Project, args: argparse.Namespace) -> Iterator[RecordView]:
    rows = _all(project, args) if args.key is None else _with_key(project, args)
    return itertools.islice(rows, args.limit)


def _all(project: Project, args: argparse.Namespace) -> Iterator[RecordView]:
    from penstock.app.moments import moment

    since = args.since and moment("--since", args.since, project.now())
    return project.records.each(
        args.collection,
        source=args.source,
        run=args.run_id,
        since=since or None,
        include_private=args.include_private,
    )


def _with_key(project: Project, args: argparse.Namespace) -> Iterator[RecordView]:
    about = (args.collection, args.key)
    if args.versions:
        return iter(project.records.versions(*about, include_private=args.include_private))
    return iter([project.records.get(*about, include_private=args.include_private)])
