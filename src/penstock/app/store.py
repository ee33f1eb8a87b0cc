"""The store of a project as a whole: the database that everything is in.

Its verbs do not ask for a connection that works on the project, which would bring the schema up to date and
refuse a database that is damaged, half copied or another project's: each opens as much as it needs. So they
work where no other verb does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.noun import Noun, who
from penstock.app.views.store import (
    AppliedView,
    BackupView,
    CopyView,
    MigratedView,
    MigrationPlanView,
    RenameView,
    RestoreView,
    SoundnessView,
    StoreView,
)
from penstock.errors import Refused, Remedy, StoreError

if TYPE_CHECKING:
    from penstock.app.store_copy import Step


def _quietly(_: object) -> None:
    """Tell nobody."""


class ProjectStore(Noun):
    """The database itself: check it, back it up, put a backup back, migrate, rename or copy it."""

    def view(self) -> StoreView:
        """Where the database is, how large it is, and which schema it has; changes nothing."""
        self._require_database()
        settings = self._project.settings
        with closing(self._project.open_schema()) as schema:
            return StoreView(
                store=settings.store_name,
                kind="postgresql" if settings.is_on_postgres else "sqlite",
                bytes=schema.size_bytes(),
                schema=schema.plan().state.number,
            )

    def check(
        self, *, reads_pages: bool | None = None, on_progress: Callable[[int], None] = _quietly
    ) -> SoundnessView:
        """Read the whole database and say what is wrong with it, and with the stored pages.

        `reads_pages` reads every page and compares its hash; without, they are only looked for. By default
        pages in a folder are read and those in a bucket are not. `on_progress` is called with the number of
        pages that are checked.
        """
        from penstock.app.soundness import check_pages

        self._require_database()
        problems = self._store.upkeep.check()
        found, pages = check_pages(self._project, reads_pages, on_progress)
        return SoundnessView(
            store=self._project.settings.store_name, problems=problems + found, pages=pages
        )

    def backup(
        self,
        file: Path | str,
        *,
        replace: bool = False,
        on_progress: Callable[[float], None] = _quietly,
    ) -> BackupView:
        """Copy the database to a file while it is in use. The copy is checked, and appears when it is whole.

        A file that exists is refused unless `replace`. `on_progress` is called with the part that is done,
        from 0 to 1. Postgres has its own tools for this.
        """
        from penstock.app.store_files import back_up

        self._refuse_on_server()
        self._require_database()
        return back_up(self._project, Path(file), replace, on_progress)

    def restore(
        self,
        file: Path | str,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> RestoreView:
        """Put a backup in the database's place, after checking it; refused while anything works on it.

        The present file is kept beside it. It may be damaged: this is what helps. All threads' connections
        are closed. With `dry_run`, only refuse what would be refused.
        """
        from penstock.app.store_files import restore

        self._refuse_on_server()
        return restore(self._project, Path(file), dry_run, who(actor), reason)

    def plan(self) -> MigrationPlanView:
        """What `migrate` would do, what each step locks and which workers are in the way; changes nothing."""
        from penstock.app.store_schema import plan

        self._require_database()
        return plan(self._project)

    def migrate(
        self,
        *,
        dry_run: bool = False,
        on_progress: Callable[[AppliedView], None] = _quietly,
        actor: str | None = None,
        reason: str = "",
    ) -> MigratedView:
        """Bring the schema up to what this Penstock knows, also by what older versions can't work with.

        Refused while a worker that needs the old schema holds a lease. `on_progress` is called with each
        migration that was applied. With `dry_run`, only refuse what would be refused.
        """
        from penstock.app.store_schema import migrate

        self._require_database()
        return migrate(self._project, dry_run, on_progress, who(actor), reason)

    def grants(self, role: str) -> list[str]:
        """The SQL that lets a role of the Postgres server work on the project and nothing more."""
        from penstock.settings.address import schema_of
        from penstock.store.address import grants_for

        settings = self._project.settings
        if not settings.is_on_postgres:
            raise Refused(
                f"{settings.store_name} is a file and has no roles",
                "its owner and mode decide",
                code="store_is_a_file",
            )
        return grants_for(schema_of(settings.store), role)

    def rename(
        self, *, dry_run: bool = False, actor: str | None = None, reason: str = ""
    ) -> RenameView:
        """Write the project's name into the database, after it was changed in penstock.yaml.

        Refused while anything works on it. With `dry_run`, only say which name it has.
        """
        from penstock.app.store_name import rename

        self._require_database()
        return rename(self._project, dry_run, who(actor), reason)

    def copy(
        self,
        to: str,
        *,
        restart: bool = False,
        on_progress: Callable[[Step], None] = _quietly,
        actor: str | None = None,
        reason: str = "",
    ) -> CopyView:
        """Copy the project to another database, and compare both; one that was cut off is continued.

        `to` is an address as in `store:`. `restart` discards an unfinished copy. `copy_store` does the same
        without a project.
        """
        from penstock.app.store_copy import copy_store

        settings = self._project.settings
        return copy_store(
            settings.store,
            to,
            folder=settings.root,
            restart=restart,
            on_progress=on_progress,
            actor=actor,
            reason=reason,
        )

    def _require_database(self) -> None:
        """Refuse to make a new database where an existing one is meant."""
        settings = self._project.settings
        if not settings.is_on_postgres and not settings.store_file.exists():
            raise StoreError(
                f"there is no database at {settings.store_name} yet",
                code="no_database",
                remedy=Remedy("runs.start"),
            )

    def _refuse_on_server(self) -> None:
        settings = self._project.settings
        if settings.is_on_postgres:
            raise Refused(
                f"{settings.store_name} is a database on a server, not a file",
                "its own tools back it up: pg_dump, pg_restore",
                code="store_on_server",
            )
