"""The keys of a source with the connector `dump`."""

from __future__ import annotations

import codecs
from typing import Annotated, Any, Literal

from penstock.connectors.dump.places import is_remote
from penstock.connectors.files.connector import read_patterns
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import Reads, Usual, about
from penstock.settings.document import Entry
from penstock.settings.kinds import Size, one_or_many, read_names, texts_schema
from penstock.settings.section import read_text


def _read_fields(entry: Entry, path: str) -> tuple[str, ...]:
    if isinstance(entry.value, str):
        return (read_text(entry, path),)
    found: tuple[str, ...] = read_names(entry, path, "columns", read_text)
    return found


def _fields_schema(_: Any) -> dict[str, Any]:
    return one_or_many()


def _read_path(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    if "://" in text and not is_remote(text):
        words = "must be a file or pattern, or begin with https://, http://, s3://, gs:// or az://"
        raise entry.error(path, words)
    return text


def _read_delimiter(entry: Entry, path: str) -> str:
    text = entry.value
    # Not by `read_text`: a tab is no printable character.
    if not isinstance(text, str) or len(text) != 1 or text in '"\r\n\0':
        raise entry.error(path, 'must be one character, such as ";" or "\\t"')
    return text


def _read_encoding(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    try:
        is_of_text = codecs.lookup(text)._is_text_encoding
    except (LookupError, ValueError):
        is_of_text = False
    if not is_of_text:
        raise entry.error(
            path, f"there is no encoding {text!r}; known are utf-8, utf-16, latin-1 …"
        )
    return text


def _text_schema(_: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": 1}


class DumpKeys(ConnectorKeys, frozen=True, kw_only=True):
    """A large file, or several."""

    path: Annotated[
        str,
        Reads(_read_path, _text_schema),
        about(
            "the file, relative to penstock.yaml, a pattern such as `./dumps/*.csv.gz`, the address of a "
            "file on a server, or an object or pattern in a bucket: `s3://BUCKET/dumps/*.csv.gz`, `gs://…`, `az://…`"
        ),
    ]
    key: Annotated[
        tuple[str, ...],
        Reads(_read_fields, _fields_schema),
        about("column or columns that make the key of a record"),
        Usual("the file and the number of the row"),
    ] = ()
    title: Annotated[str | None, about("column with the title of a record"), Usual("none")] = None
    text: Annotated[str | None, about("column with the text of a record"), Usual("none")] = None
    format: Annotated[
        Literal["csv", "jsonl", "xml", "parquet", "sqlite", "zip", "tar"] | None,
        about("`csv`, `jsonl`, `xml`, `parquet`, `sqlite`, `zip` or `tar`"),
        Usual("by the name"),
    ] = None
    delimiter: Annotated[
        str | None,
        Reads(_read_delimiter, _text_schema),
        about("what separates the cells of CSV"),
        Usual("by the first line"),
    ] = None
    header: Annotated[bool, about("whether the first line of CSV has the names of columns")] = True
    encoding: Annotated[
        str | None,
        Reads(_read_encoding, _text_schema),
        about("encoding of text, such as `latin-1`"),
        Usual("UTF-8, UTF-16 with its mark, else Windows-1252"),
    ] = None
    members: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about(
            'files to read of an archive, or tables of a database, such as `["*.csv"]`, in the syntax of '
            "ignore files"
        ),
        Usual("all"),
    ] = ()
    element: Annotated[
        str | None,
        about("name of the XML element that is a row"),
        Usual("the children of the outermost one"),
    ] = None
    max_bytes: Annotated[Size, about("most bytes of a file, unpacked")] = 100_000_000_000
