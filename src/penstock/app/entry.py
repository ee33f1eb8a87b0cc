"""Opening the project that a front end is asked about."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from penstock.app.project import Project
from penstock.private_files import make_private, own_folder
from penstock.settings import find_project
from penstock.store.sqlite.database import files_of, translated


def open_project(place: Path | str | None = None, environment: str | None = None) -> Project:
    """The project in this folder; if none is named, the nearest one at or above the current folder."""
    return Project.open(find_project(Path.cwd()) if place is None else place, environment)


def protect_files(project: Project) -> list[Path]:
    """Make the project's data files readable by their owner alone; answers with those that were not."""
    settings = project.settings
    files = [] if settings.is_on_postgres else files_of(settings.store_file.resolve())
    if isinstance(settings.snapshots, Path):
        files += own_folder(settings.snapshots)
    return make_private(files)


def store_errors_explained(project: Project) -> AbstractContextManager[None]:
    """A file that breaks while it is read raises a StoreError; a server's store does so by itself."""
    settings = project.settings
    return nullcontext() if settings.is_on_postgres else translated(settings.store_file)
