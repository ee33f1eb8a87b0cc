"""The project's name in its database, and its environment's: they follow a project that has new ones."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from penstock.app.store_copy import refuse_working
from penstock.app.views.store import RenameView
from penstock.store import project_name
from penstock.store.address import open_end

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns


def rename(project: Nouns, is_dry: bool, actor: str, reason: str) -> RenameView:
    """Write the names that the settings have into the database; nothing if it has them."""
    settings = project.settings
    names = (settings.project, settings.environment_name)
    with closing(open_end(settings.store, settings.root, project.clock)) as end:
        before = project_name.names_in(end.db)
        # One that was never used with environments takes the name of the first that comes.
        if before not in (names, (names[0], None)):
            refuse_working(end)
            if not is_dry:
                project_name.rename(end.db, names[0], actor, reason, names[1])
    return RenameView(
        store=settings.store_name,
        before=before[0],
        project=names[0],
        environment_before=before[1],
        environment=names[1],
    )
