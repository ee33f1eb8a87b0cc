"""Tables: the companies in each format. Equal companies give equal bytes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any, BinaryIO

import msgspec

from penstock.builder.company import FIELDS, Company, dataset_row
from penstock.csv_cells import guarded
from penstock.errors import UsageError

# What a sheet can hold.
MOST_SHEET_ROWS = 1_048_575
LONGEST_CELL = 32_767
BETWEEN = "; "
# A spreadsheet takes it for a number, and runs nothing.
_E164 = re.compile(r"\+[0-9]{7,15}")
Writer = Callable[[Sequence[Company], BinaryIO], None]


def write_jsonl(companies: Sequence[Company], file: BinaryIO) -> None:
    """One object a line, with all fields in order."""
    encode = msgspec.json.Encoder().encode
    for company in companies:
        file.write(encode(dataset_row(company)))
        file.write(b"\n")


def write_csv(companies: Sequence[Company], file: BinaryIO) -> None:
    """A header, then a line each; text that a spreadsheet would run starts with an apostrophe.

    Telephone numbers stay as they are: `+` and digits.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in FIELDS])
    for company in companies:
        writer.writerow([_csv_cell(_cell(value)) for value in dataset_row(company).values()])
    text.flush()
    text.detach()


def write_parquet(companies: Sequence[Company], file: BinaryIO) -> None:
    """Typed columns; lists are lists."""
    pyarrow = _needed("pyarrow")
    types = {
        "string": pyarrow.string(),
        "integer": pyarrow.int64(),
        "number": pyarrow.float64(),
        "list": pyarrow.list_(pyarrow.string()),
    }
    schema = pyarrow.schema([pyarrow.field(each.name, types[each.kind]) for each in FIELDS])
    rows = [dataset_row(company) for company in companies]
    columns = [
        pyarrow.array([row[each.name] for row in rows], schema.field(each.name).type)
        for each in FIELDS
    ]
    table = pyarrow.Table.from_arrays(columns, schema=schema)
    import_module("pyarrow.parquet").write_table(table, file, compression="zstd")


def write_xlsx(companies: Sequence[Company], file: BinaryIO) -> None:
    """One sheet. Text stays text: no formula, no link, no number that was none."""
    if len(companies) > MOST_SHEET_ROWS:
        raise UsageError(
            f"a sheet holds {MOST_SHEET_ROWS:,} companies, and there are {len(companies):,}",
            "leave xlsx out of output.formats",
            code="too_many_rows",
        )
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    book = _needed("xlsxwriter").Workbook(file, options)
    # The day of the file would make each export another.
    book.set_properties({"created": datetime(2000, 1, 1)})  # noqa: DTZ001
    sheet = book.add_worksheet("companies")
    bold = book.add_format({"bold": True})
    for at, each in enumerate(FIELDS):
        sheet.write_string(0, at, each.name, bold)
    for number, company in enumerate(companies, 1):
        for at, value in enumerate(dataset_row(company).values()):
            _write(sheet, number, at, _cell(value))
    sheet.freeze_panes(1, 2)
    sheet.autofilter(0, 0, len(companies), len(FIELDS) - 1)
    book.close()


def _write(sheet: Any, row: int, column: int, cell: Any) -> None:
    if isinstance(cell, str):
        sheet.write_string(row, column, cell[:LONGEST_CELL])
    elif cell is not None:
        sheet.write_number(row, column, cell)


def _csv_cell(cell: Any) -> Any:
    is_harmless = not isinstance(cell, str) or _E164.fullmatch(cell)
    return cell if is_harmless else guarded(cell)


def _cell(value: Any) -> Any:
    return BETWEEN.join(str(each) for each in value) if isinstance(value, list) else value


def _needed(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise UsageError(
            f"this format needs {module}, which is not installed",
            "pip install 'penstock[builder]'",
            code="extra_missing",
        ) from None


WRITERS: dict[str, Writer] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "xlsx": write_xlsx,
}


def known_formats(formats: Iterable[str]) -> list[str]:
    """The formats, each once; one that there is not is refused."""
    wanted = list(dict.fromkeys(formats))
    for each in wanted:
        if each not in WRITERS:
            raise UsageError(
                f"there is no format {each!r}", f"formats: {', '.join(WRITERS)}", code="no_format"
            )
    return wanted
