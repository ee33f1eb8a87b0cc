"""Releases: which one this environment runs, how it came here, and what it is made of.

A release comes into an environment in one transaction: its contents, the move, the approvals that it needed,
its site schemas and the line in the journal are all there or nothing is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.errors import Refused, Remedy
from penstock.journal.release_events import (
    ReleaseApproved,
    ReleaseCreated,
    ReleaseEvent,
    ReleaseFetched,
    ReleasePromoted,
    ReleaseRolledBack,
    WorkersDiffer,
)
from penstock.releases.manifest import (
    SHOWN,
    Manifest,
    changed,
    read_manifest,
    refuse_changed,
)
from penstock.store.database import LAST_ID, Overtaken, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.record_edits import run_of_edits
from penstock.store.record_rows import Present, Where, read_present, write_records

ReleaseVerb = Literal["create", "promote", "rollback"]
SITE_SCHEMAS = "site_schemas"
UTF_8, BASE64 = "utf-8", "base64"


class ReleaseRow(msgspec.Struct, frozen=True):
    """A release as it was made; `environment` is where."""

    id: str
    manifest: Manifest
    created_at: float
    actor: str
    reason: str
    environment: str


class ApprovalRow(msgspec.Struct, frozen=True):
    """Somebody approves a release for this environment."""

    actor: str
    at: float
    reason: str


class ReleaseActRow(msgspec.Struct, frozen=True):
    """A move of this environment from one release to another."""

    id: int
    verb: ReleaseVerb
    release_id: str
    before_id: str | None
    from_environment: str | None
    at: float
    actor: str
    reason: str
    approvals: list[ApprovalRow]


class SiteSchema(msgspec.Struct, frozen=True):
    """A record of `site_schemas`, and the source that it is of."""

    source: str
    data: msgspec.Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseMove:
    """The environment is to run this release instead of the one that it was seen to run."""

    verb: ReleaseVerb
    release: ReleaseRow
    contents: Mapping[str, bytes]
    seen: str | None
    actor: str
    reason: str
    from_environment: str | None = None
    approvals_needed: int = 0


class Releases(Noun):
    """The verbs of releases."""

    def running(self) -> str | None:
        """The release that this environment runs; None before the first."""
        found = self._db.value("running_release")
        return None if found is None else str(found)

    def get(self, release: str) -> ReleaseRow | None:
        """The release of this whole id; refused where it is not what the id was made of."""
        rows = self._db.rows("release", id=release)
        if not rows:
            return None
        key, manifest, *rest = rows[0]
        return ReleaseRow(key, read_manifest(manifest.encode(), key), *rest)

    def like(self, prefix: str) -> list[str]:
        """Ids that begin with this; two where there are more."""
        rows = self._db.rows("releases_like", prefix=prefix, above=f"{prefix}g")
        return [row[0] for row in rows]

    def contents(self, row: ReleaseRow, hashes: Iterable[str] | None = None) -> dict[str, bytes]:
        """What is kept of a release under these hashes, or all of it; refused where anything was changed."""
        wanted = row.manifest.contents if hashes is None else hashes
        found = {name: self._content(name, row.id) for name in wanted}
        refuse_changed(found, row.id)
        return found

    def _content(self, name: str, release: str) -> bytes:
        rows = self._db.rows("release_content", hash=name)
        if not rows:
            raise changed(f"a file of release {release[:SHOWN]} is missing")
        encoding, content = rows[0]
        try:
            return base64.b64decode(content) if encoding == BASE64 else str(content).encode()
        except binascii.Error:
            return b""  # not what its hash says

    def acts(self, limit: int, before_id: int | None = None) -> list[ReleaseActRow]:
        """How releases came into this environment, the newest first."""
        before = LAST_ID if before_id is None else before_id
        return [_act(row) for row in self._db.rows("release_acts", before_id=before, limit=limit)]

    def acts_of(self, release: str, limit: int) -> list[ReleaseActRow]:
        """The same of one release."""
        return [_act(row) for row in self._db.rows("release_acts_of", release=release, limit=limit)]

    def approvals(self, release: str) -> list[ApprovalRow]:
        """Who approves this release for this environment, and was not needed for a promotion yet."""
        return [ApprovalRow(*row) for row in self._db.rows("release_approvals", release=release)]

    def waiting(self, limit: int) -> list[tuple[str, ApprovalRow]]:
        """The approvals that no promotion has used yet, each with its release, the newest first."""
        rows = self._db.rows("waiting_release_approvals", limit=limit)
        return [(row[0], ApprovalRow(*row[1:])) for row in rows]

    def approve(self, release: str, actor: str, reason: str) -> bool:
        """Approve a release, which need not be here yet; False for who has approved it already."""
        with self._db.writing() as now:
            about = {"release": release, "actor": actor, "now": now, "reason": reason}
            if not self._db.do("add_release_approval", **about):
                return False
            self._tell(ReleaseApproved(release=release, reason=reason), now, actor)
            return True

    def keep(
        self, row: ReleaseRow, contents: Mapping[str, bytes], source: str, actor: str, reason: str
    ) -> bool:
        """Keep a release of another environment, which runs nothing here by that; False if it is here."""
        with self._db.writing() as now:
            if self._db.rows("release", id=row.id):
                return False
            self._add(row, contents)
            event = ReleaseFetched(release=row.id, from_environment=source, reason=reason)
            self._tell(event, now, actor)
            return True

    def note_other(self, event: WorkersDiffer, actor: str) -> None:
        """Say in the journal that workers run something else than the release."""
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            ledger.journal(event, actor=actor)
            ledger.write()

    def site_schemas(self) -> dict[str, bytes]:
        """The records of `site_schemas`, each with its source, by key."""
        return {
            key: to_json(SiteSchema(source, msgspec.Raw(data.encode()))).encode()
            for key, source, data in self._db.rows("site_schemas", collection=SITE_SCHEMAS)
        }

    def move(self, move: ReleaseMove) -> ReleaseActRow | None:
        """Run this release from now on: all of it is durable, or nothing happened.

        None if it runs already. Refused where the environment runs another than was seen, or where
        approvals are missing.
        """
        row = move.release
        with self._db.writing() as now:
            before = self._db.value("lock_running_release")
            if before == row.id:
                return None
            if before != move.seen:
                raise Refused(
                    "another release came into this environment just now; nothing was changed",
                    code="release_moved",
                    remedy=Remedy("releases.history"),
                )
            approvals = self._spent(move)
            self._add(row, move.contents)
            if not self._db.do("run_release", release=row.id):
                raise Refused("no project has used this database yet", code="no_project")
            act = self._db.rows(
                "add_release_act",
                verb=move.verb,
                release=row.id,
                before=before,
                from_environment=move.from_environment,
                now=now,
                actor=move.actor,
                reason=move.reason,
                approvals=to_json(approvals),
            )[0][0]
            self._set_site_schemas(move, before, now)
            self._tell(_event(move, before, approvals), now, move.actor)
            about = (move.from_environment, now, move.actor, move.reason, approvals)
            return ReleaseActRow(act, move.verb, row.id, before, *about)

    def _spent(self, move: ReleaseMove) -> list[ApprovalRow]:
        """The approvals of a release, which this promotion uses up."""
        if move.verb != "promote":
            return []
        found = self.approvals(move.release.id)
        if len(found) < move.approvals_needed:
            raise Refused(
                f"release {move.release.id[:SHOWN]} has {len(found)} of the {move.approvals_needed} "
                "approvals that it needs here",
                code="approvals_missing",
                remedy=Remedy("releases.approve", move.release.id[:SHOWN]),
            )
        self._db.do("spend_release_approvals", release=move.release.id)
        return found

    def _add(self, row: ReleaseRow, contents: Mapping[str, bytes]) -> None:
        for name in row.manifest.contents:
            encoding, content = _stored(contents[name])
            self._db.do("add_release_content", hash=name, encoding=encoding, content=content)
        self._db.do(
            "add_release",
            id=row.id,
            manifest=row.manifest.encoded.decode(),
            created_at=row.created_at,
            actor=row.actor,
            reason=row.reason,
            environment=row.environment,
        )

    def _set_site_schemas(self, move: ReleaseMove, before: str | None, now: float) -> None:
        """Let records follow what is new in the release; what agents have learned here stays elsewhere.

        A release that was made here has them from here.
        """
        if move.verb == "create":
            return
        old = None if before is None else self.get(before)
        known = {} if old is None else old.manifest.site_schemas
        there = self.site_schemas()
        ids = self._db.json("source_ids")
        wanted: dict[Where, tuple[int, str]] = {}
        for key, name in move.release.manifest.site_schemas.items():
            if known.get(key) == name and key in there:
                continue
            found = msgspec.json.decode(move.contents[name], type=SiteSchema)
            if found.source in ids:  # else the environment has no such source
                wanted[SITE_SCHEMAS, key] = ids[found.source], bytes(found.data).decode()
        if wanted:
            self._write(wanted, move, now)

    def _write(
        self, wanted: Mapping[Where, tuple[int, str]], move: ReleaseMove, now: float
    ) -> None:
        """New versions of these records, unless they are so already."""
        ledger = Ledger(self._db, now)
        runs = {
            source_id: run_of_edits(self._db, source_id, move.actor, now)
            for source_id, _ in wanted.values()
        }
        while True:
            present = read_present(self._db, wanted)
            for where, (source_id, data) in wanted.items():
                record = present.setdefault(where, Present(None, 0, "", None, adds=1))
                if record.id is None or record.is_removed or record.data != data:
                    record.adds = int(record.id is None or record.is_removed)
                    record.data, record.is_changed, record.is_removed = data, True, False
                    record.source_id, record.run_id = source_id, runs[source_id]
                    record.pipeline_version = f"release {move.release.id[:SHOWN]}"
            with suppress(Overtaken), self._db.nested():
                write_records(self._db, ledger, present)
                break
        ledger.write()

    def _tell(self, event: ReleaseEvent, now: float, actor: str) -> None:
        ledger = Ledger(self._db, now)
        ledger.journal(event, actor=actor)
        ledger.write()


def new_release(
    manifest: Manifest, environment: str, actor: str, reason: str, now: float
) -> ReleaseRow:
    return ReleaseRow(manifest.id, manifest, now, actor, reason, environment)


def _event(move: ReleaseMove, before: str | None, approvals: Sequence[ApprovalRow]) -> ReleaseEvent:
    release, reason = move.release.id, move.reason
    if move.verb == "create":
        return ReleaseCreated(release=release, before=before or "", reason=reason)
    if move.verb == "rollback":
        return ReleaseRolledBack(release=release, before=before or "", reason=reason)
    return ReleasePromoted(
        release=release,
        before=before or "",
        reason=reason,
        from_environment=move.from_environment or "",
        approved_by=tuple(each.actor for each in approvals),
    )


def _act(row: Sequence[Any]) -> ReleaseActRow:
    approvals = msgspec.json.decode(row[8], type=list[ApprovalRow])
    return msgspec.structs.replace(ReleaseActRow(*row), approvals=approvals)


def _stored(content: bytes) -> tuple[str, str]:
    """How a content is kept: as the text that it is, unless no database could keep that."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return BASE64, base64.b64encode(content).decode()
    return (UTF_8, text) if "\0" not in text else (BASE64, base64.b64encode(content).decode())
