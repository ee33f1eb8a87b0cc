"""`penstock schema`: what records look like, and whether they fit."""

from __future__ import annotations

import argparse
from pathlib import Path

from penstock.cli import exits
from penstock.cli.parser import (
    Commands,
    add_command,
    add_json,
    add_limit,
    add_private,
    add_verb,
)
from penstock.cli.render.tables import column, key_column, text
from penstock.cli.render.wording import count
from penstock.errors import UsageError

DESCRIPTION = """\
A collection can have a schema: records that do not fit it are rejected, with the path of the field. `infer`
makes one from what is stored; `check` tests stored records. Name it in penstock.yaml:
collections: {product: {schema: product.schema.json}}"""
EXAMPLES = """\
  penstock schema infer product --output product.schema.json
  penstock schema check product
  penstock schema check product --schema stricter.schema.json"""
INFER = "Print the JSON Schema that all present records of a collection fit, or write it to a file."
CHECK = """\
Test the present records of a collection against its schema: that of penstock.yaml and the models that
pipelines name for it, or the one in --schema FILE. Ends with 3 if some do not fit."""
SHOWN = 20


def register(commands: Commands) -> None:
    parser = add_command(commands, "schema", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    inferring = add_verb(
        verbs, "infer", "make one from what is stored", INFER, EXAMPLES.splitlines()[0]
    )
    inferring.add_argument("collection", metavar="COLLECTION", help="which records")
    inferring.add_argument("--output", type=Path, metavar="FILE", help="file to write (stdout)")
    add_private(inferring)
    inferring.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    inferring.set_defaults(run=infer)
    checking = add_verb(verbs, "check", "test stored records", CHECK, EXAMPLES.splitlines()[1])
    checking.add_argument("collection", metavar="COLLECTION", help="which records")
    checking.add_argument(
        "--schema", type=Path, metavar="FILE", help="a JSON Schema (the configured)"
    )
    add_limit(checking, SHOWN, "records that do not fit")
    add_private(checking)
    add_json(checking)
    checking.set_defaults(run=check)


def infer(args: argparse.Namespace) -> int:
    import json

    from penstock.cli.lookup import opened

    with opened(args) as project:
        schema = json.dumps(project.records.infer_schema(args.collection), indent=2) + "\n"
        if project.settings.private_sources and not args.include_private:
            args.out.note("records of private sources are left out; --include-private reads them")
    if args.output is None:
        args.out.stdout.write(args.out.masked(schema))
        return exits.DONE
    try:
        with args.output.open("w" if args.overwrite else "x", encoding="utf-8") as file:
            file.write(schema)
    except FileExistsError:
        raise UsageError(f"{args.output} is there already", "--overwrite replaces it") from None
    except OSError as error:
        raise UsageError(f"{args.output} can't be written ({error.strerror})") from None
    args.out.note(f"written to {args.output}")
    return exits.DONE


def check(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.records.check_schema(args.collection, schema=args.schema, limit=args.limit)
    if args.json:
        args.out.json(found.as_json())
    else:
        if found.shown:
            columns = (
                key_column("key"),
                column("source", 4),
                column("run", 3),
                text("problem", 1, 20),
            )
            rows = ((each.key, each.source, str(each.run), each.problem) for each in found.shown)
            args.out.table(columns, rows)
        said = f"{count(found.records, 'record')} of {found.collection} tested"
        args.out.line(
            f"{said}; {found.misfits:,} do not fit" if found.misfits else f"{said}; all fit"
        )
    return exits.PARTIAL if found.misfits else exits.DONE
