"""An export from its beginning to its manifest: read into a spool, write the file, put it in place.

Every step can be cut short and taken again. The file and its manifest get their names at the end, each by
one rename (or one put, in a bucket), so nobody ever reads half of one; and the same command goes on where it
stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.record_export.columns import Columns, columns_of
from penstock.app.record_export.formats import WRITERS, format_of, refuse_missing
from penstock.app.record_export.spool import Progress, Spool, Wanted
from penstock.app.record_export.targets import Target, target_of
from penstock.app.views.record_exports import ColumnView, ManifestView
from penstock.clock import iso
from penstock.errors import Refused, UsageError
from penstock.journal.audit_events import RecordsExported
from penstock.schemas.infer import schema_of
from penstock.settings.secrets import redact_within
from penstock.snapshots.objects import Objects, object_url
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.record_exports import ExportCursor
    from penstock.store.rows import RecordRow

MANIFEST_VERSION = 1
# So much is read between two syncs of the spool.
PAGES_A_NOTE = 20
HASHED_AT_ONCE = 1 << 20
LARGEST_MANIFEST = 100_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """What an operator asked for."""

    collection: str
    to: str
    format: str | None = None
    since: str | None = None
    run: int | None = None
    include_private: bool = False
    overwrite: bool = False
    on_progress: Callable[[int], None] = lambda records: None
    actor: str = ""


def export(project: Nouns, asked: Request) -> ManifestView:
    """Write the export, and its manifest beside it."""
    form = format_of(asked.format, asked.to)
    refuse_missing(form)
    project.records.require_collection(asked.collection)
    if asked.run is not None:
        project.require_run(asked.run)
    since = None if asked.since is None else known_cursor(project, asked.since)
    target = target_of(project.settings.root, asked.to, asked.collection, form)
    wanted = Wanted(
        project.settings.project,
        asked.collection,
        form,
        None if since is None else since.token,
        asked.run,
        asked.include_private,
    )
    with Spool.locked(target.spool) as spool:
        progress = spool.resume(wanted)
        is_resumed = progress is not None
        if progress is None:
            try:
                target.refuse_taken(asked.overwrite)
                _refuse_untraced(project)
            except BaseException:
                spool.drop()
                raise
            progress = spool.begin(wanted, project.connection.record_exports.begin().token)
        _read(project, spool, progress, since, asked)
        return _finish(project, spool, progress, target, asked.actor, is_resumed)


def known_cursor(project: Nouns, text: str) -> ExportCursor:
    """A cursor by its text, or the one in a manifest of this path."""
    is_path = text.endswith(".json") or "://" in text or Path(text).exists()
    token = _cursor_in(text) if is_path else text
    found = project.connection.record_exports.cursor(token)
    if found is None:
        raise UsageError(
            f"this database has no cursor {token!r}",
            "a copied or restored database knows none from before: make an export of everything once",
            code="no_cursor",
        )
    return found


def _cursor_in(path: str) -> str:
    try:
        return str(msgspec.json.decode(_manifest_at(path))["cursor"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        raise UsageError(f"{path} is no manifest of an export", code="no_cursor") from None


def _manifest_at(path: str) -> bytes:
    """A manifest in a file or in a bucket; nothing if there is none."""
    url = object_url(path) if "://" in path else None
    if url is None:
        return Path(path.removeprefix("file://")).read_bytes()
    objects = Objects(url)
    return objects.get(objects.name, LARGEST_MANIFEST) or b""


def _refuse_untraced(project: Nouns) -> None:
    if old := project.connection.record_exports.untraced_writers():
        raise Refused(
            f"workers of an older version are running: {', '.join(old[:3])}",
            "an export could miss what they write; upgrade or stop them first",
            code="old_workers",
        )


def _read(
    project: Nouns,
    spool: Spool,
    progress: Progress,
    since: ExportCursor | None,
    asked: Request,
) -> None:
    if progress.is_read:
        return
    upto = known_cursor(project, progress.upto)
    private = frozenset() if asked.include_private else project.settings.private_sources
    secrets = project.settings.secrets
    pages = project.connection.record_exports.pages(
        asked.collection,
        upto,
        since=since,
        run_id=asked.run,
        after_key=progress.after_key,
    )
    with spool.appending(progress) as adding:
        for number, page in enumerate(pages, 1):
            for row in page.records:
                if row.source in private:
                    progress.private += 1
                else:
                    adding.add(redact_within(_line(row), secrets))
            if number % PAGES_A_NOTE == 0:
                adding.note(page.last)
                asked.on_progress(progress.records + progress.deletions)
        adding.note(None, is_read=True)


def _line(row: RecordRow) -> dict[str, Any]:
    """A record as it is exported: one that was removed has no data."""
    return {
        "key": row.key,
        "data": None if row.is_removed else row.data,
        "score": row.score,
        "source": row.source,
        "run": row.run,
        "version": row.version,
        "updated_at": iso(row.updated_at),
        "is_removed": row.is_removed,
    }


def _finish(
    project: Nouns,
    spool: Spool,
    progress: Progress,
    target: Target,
    actor: str,
    is_resumed: bool,
) -> ManifestView:
    lines = progress.records + progress.deletions
    columns = columns_of(progress.shape, lines, progress.without_score)
    made = _made(spool, progress, columns)
    manifest = _manifest(project, progress, columns, target, made)
    target.place(made, msgspec.json.format(msgspec.json.encode(manifest.as_json()), indent=2))
    project.connection.record_exports.note(_event(progress.wanted, manifest), actor)
    spool.drop()
    return msgspec.structs.replace(manifest, is_resumed=True) if is_resumed else manifest


def _event(wanted: Wanted, made: ManifestView) -> RecordsExported:
    return RecordsExported(
        collection=made.collection,
        format=made.format,
        to=made.to,
        records=made.records,
        deletions=made.deletions,
        cursor=made.cursor,
        since=made.since,
        of_run=made.run,
        private=wanted.include_private,
    )


def _made(spool: Spool, progress: Progress, columns: Columns) -> Path:
    """The file in its format, still in the spool's folder."""
    wanted = progress.wanted
    made = spool.folder / f"made.{wanted.format}"
    made.unlink(missing_ok=True)
    if wanted.format == "jsonl":
        spool.copy_to(made)
        return made
    WRITERS[wanted.format](spool.each(), columns, made, wanted.collection)
    return made


def _manifest(
    project: Nouns, progress: Progress, columns: Columns, target: Target, made: Path
) -> ManifestView:
    wanted = progress.wanted
    digest = hashlib.sha256()
    with open(made, "rb") as file:
        while piece := file.read(HASHED_AT_ONCE):
            digest.update(piece)
    return ManifestView(
        manifest=MANIFEST_VERSION,
        project=wanted.project,
        collection=wanted.collection,
        format=wanted.format,
        to=target.name,
        bytes=made.stat().st_size,
        sha256=digest.hexdigest(),
        records=progress.records,
        deletions=progress.deletions,
        private_left_out=progress.private,
        since=wanted.since,
        run=wanted.run,
        cursor=progress.upto,
        versions_sha256=progress.versions,
        exported_at=project.now(),
        penstock=__version__,
        columns=[
            ColumnView(name=each.name, type=each.kind, nulls=each.nulls) for each in columns.all
        ],
        schema=schema_of(progress.shape),
    )


def as_lines(rows: Any, secrets: frozenset[str]) -> list[Mapping[str, Any]]:
    """Records as an export has them, for a table in memory."""
    return [redact_within(_line(row), secrets) for row in rows]
