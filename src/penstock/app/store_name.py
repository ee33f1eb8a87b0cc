"""The project's name in its database: it follows a project that has a new one."""

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
    """Write the name that the settings have into the database; nothing if it has it."""
    settings = project.settings
    with closing(open_end(settings.store, settings.root, project.clock)) as end:
        before = project_name.name_in(end.db)
        if before != settings.project:
            refuse_working(end)
            if not is_dry:
                project_name.rename(end.db, settings.project, actor, reason)
    return RenameView(store=settings.store_name, before=before, project=settings.project)
