"""The database of a project as front ends see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import View

if TYPE_CHECKING:
    from penstock.app.store_copy import Copied
    from penstock.store.schema import Applied, Migration, Plan


class StoreView(View, frozen=True, kw_only=True):
    """Where the database is and how large it is.

    `kind` is `sqlite` or `postgresql`. `bytes` counts the file with its log, or the tables and indexes of the
    schema on a server; `schema` is the number of the last migration, 0 if there is none yet.
    """

    store: str
    kind: str
    bytes: int
    schema: int


class SoundnessView(View, frozen=True, kw_only=True):
    """What a check has found: a sentence for each problem. `pages` stored pages were looked at."""

    store: str
    problems: list[str]
    pages: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class BackupView(View, frozen=True, kw_only=True):
    """A backup that was made and checked."""

    file: str
    bytes: int


class RestoreView(View, frozen=True, kw_only=True):
    """A backup that lies in the database's place, or would: `kept` is the name of the file that was there."""

    store: str
    file: str
    kept: str | None
    is_done: bool


class OldWorkerView(View, frozen=True, kw_only=True):
    """A worker that holds a lease and could not work on the new schema."""

    id: str = msgspec.field(name="worker")
    host: str
    version: str
    schema: int


class MigrationView(View, frozen=True, kw_only=True):
    """A migration that is missing: what it does (`expands` or `contracts`), locks, and who is in its way."""

    number: int
    name: str = msgspec.field(name="migration")
    effect: str
    locks: str
    in_the_way: list[OldWorkerView]


class MigrationPlanView(View, frozen=True, kw_only=True):
    """What a migration would do. `known` is the newest schema that this Penstock knows.

    `leftovers` are indexes whose making was cut short; they are dropped.
    """

    store: str
    schema: int
    known: int
    pending: list[MigrationView]
    leftovers: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.pending and not self.leftovers


class AppliedView(View, frozen=True, kw_only=True):
    """A migration that was applied, and how long its transaction took by the database's clock."""

    number: int
    name: str = msgspec.field(name="migration")
    effect: str
    seconds: float


class MigratedView(View, frozen=True, kw_only=True):
    """The schema after a migration, what was applied, and the unfinished indexes that were dropped."""

    store: str
    schema: int
    applied: list[AppliedView]
    dropped: list[str]


class CopiedTableView(View, frozen=True, kw_only=True):
    """A table that was copied: its rows, and their hash, which is equal on both sides."""

    table: str
    rows: int
    sha256: str


class CopyView(View, frozen=True, kw_only=True):
    """A copy that is whole. `released` jobs were running in the origin and are queued in the copy.

    `is_resumed`: it continued a copy that was cut off.
    """

    origin: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    rows: int
    released: int
    is_resumed: bool
    tables: list[CopiedTableView]


class RenameView(View, frozen=True, kw_only=True):
    """The names that the database had, and those it has now; the same if it had them already."""

    store: str
    before: str | None
    project: str
    environment_before: str | None
    environment: str

    @property
    def is_new(self) -> bool:
        environments = (self.environment, None)
        return self.before != self.project or self.environment_before not in environments


def plan_view(store: str, plan: Plan, known: int) -> MigrationPlanView:
    return MigrationPlanView(
        store=store,
        schema=plan.state.number,
        known=known,
        pending=[_migration_view(each, plan) for each in plan.pending],
        leftovers=list(plan.leftovers),
    )


def _migration_view(migration: Migration, plan: Plan) -> MigrationView:
    return MigrationView(
        number=migration.number,
        name=migration.name,
        effect=migration.effect,
        locks=migration.locks or "the whole file, for a moment",
        in_the_way=[
            OldWorkerView(id=each.id, host=each.host, version=each.version, schema=each.schema)
            for each in plan.in_the_way(migration)
        ],
    )


def applied_view(applied: Applied) -> AppliedView:
    migration = applied.migration
    return AppliedView(
        number=migration.number,
        name=migration.name,
        effect=migration.effect,
        seconds=round(applied.took_s, 3),
    )


def copy_view(origin: str, target: str, copied: Copied) -> CopyView:
    return CopyView(
        origin=origin,
        target=target,
        rows=copied.rows,
        released=copied.released,
        is_resumed=copied.is_resumed,
        tables=_tables(copied),
    )


def _tables(copied: Copied) -> list[CopiedTableView]:
    return [
        CopiedTableView(table=each.table, rows=each.rows, sha256=each.sha256)
        for each in copied.tables
    ]
