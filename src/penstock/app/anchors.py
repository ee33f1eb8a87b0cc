"""Anchors: heads of the audit chain, kept in a file outside of the database: one JSON object per line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.audit.chain import Head
from penstock.errors import UsageError
from penstock.private_files import touch_private

if TYPE_CHECKING:
    from penstock.app.views.audit import HeadView


class _Anchor(msgspec.Struct):
    project: str
    seal: int
    last_event: int
    hash: str


def append_anchor(file: Path, head: HeadView) -> bool:
    """Add the head to the file, unless it is its last line already; whether it was added."""
    known = read_anchors(file, head.project) if file.exists() else []
    if known and known[-1].hash == head.hash:
        return False
    try:
        touch_private(file)
        with file.open("a", encoding="utf-8") as out:
            out.write(msgspec.json.encode(head.as_json()).decode() + "\n")
    except OSError as error:
        raise UsageError(
            f"can't write {file}: {error.strerror}", "name a file in a folder that you may write to"
        ) from error
    return True


def read_anchors(file: Path, project: str) -> list[Head]:
    """The heads in a file; what is no anchor of this project is refused."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"can't read {file}: {getattr(error, 'strerror', None) or 'it is no text'}",
            "an anchor file is made by `audit head --anchor FILE`",
            code="no_anchors",
        ) from error
    return [_head(file, number, line, project) for number, line in enumerate(lines, 1) if line]


def _head(file: Path, number: int, line: str, project: str) -> Head:
    try:
        found = msgspec.json.decode(line, type=_Anchor)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"line {number} of {file} is no anchor: {error}", code="no_anchors"
        ) from error
    if found.project != project:
        raise UsageError(
            f"line {number} of {file} is an anchor of the project {found.project}, not of {project}",
            code="no_anchors",
        )
    return Head(found.seal, found.last_event, found.hash, 0.0)
