"""`penstock records export`: a collection as a file with a manifest."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, cast

from penstock.cli.parser import Parser, add_json, whole_number
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app.views.record_exports import ManifestView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Write a collection to a file or an object of a bucket, and a manifest beside it (FILE.manifest.json): counts,
hashes, columns, a JSON Schema, and the cursor for the next incremental export. Each record is there once, in
one version; removed records are there with is_removed and without data.

The file appears when it is whole. If the export is killed, the same command continues it. Parquet and DuckDB
need the extra `data`, buckets the extra `blob`. Records of private sources are left out."""
EXAMPLES = """\
examples:
  penstock records export product --to products.jsonl
  penstock records export product --format parquet --to s3://bucket/products.parquet
  penstock records export product --to changes.csv --since products.jsonl.manifest.json
  penstock records export product --to run-12.csv --run 12"""
FORMATS = ("jsonl", "csv", "parquet", "duckdb")


def register(records: argparse.ArgumentParser) -> None:
    parser = Parser(prog="penstock records export", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("collection", metavar="COLLECTION", help="which records")
    parser.add_argument(
        "--to", required=True, metavar="PATH", help="a file, a folder, or s3://BUCKET/NAME (gs, az)"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help="jsonl, csv, parquet, duckdb (by the ending of PATH)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--since",
        metavar="CURSOR",
        help="only what was written after this cursor, or that of this manifest (a file, or s3://…)",
    )
    which.add_argument(
        "--run", dest="run_id", type=whole_number, metavar="RUN", help="only what this run wrote"
    )
    parser.add_argument(
        "--include-private", action="store_true", help="also records of private sources"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    add_json(parser)
    parser.set_defaults(run=run)
    cast(Parser, records).verbs = {"export": parser}


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        done = project.records.export(
            args.collection,
            args.to,
            format=args.format,
            since=args.since,
            run=args.run_id,
            include_private=args.include_private,
            overwrite=args.overwrite,
            on_progress=lambda records: args.out.note(f"{count(records, 'record')} read"),
        )
    if args.json:
        args.out.json(done.as_json())
    else:
        _tell(done, args.out)
    return 0


def _tell(done: ManifestView, out: Output) -> None:
    removed = f" and {count(done.deletions, 'deletion')}" if done.deletions else ""
    out.line(f"{count(done.records, 'record')}{removed} of {done.collection} in {done.to}")
    out.fields(
        [
            ("manifest", f"{done.to}.manifest.json"),
            ("cursor", done.cursor),
            ("sha256", done.sha256),
            (
                "left out",
                done.private_left_out
                and f"{count(done.private_left_out, 'record')} of private sources; --include-private",
            ),
        ]
    )
    if done.is_resumed is True:
        out.note("continued an export that was interrupted")
