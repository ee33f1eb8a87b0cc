"""Finding the project that a command is about, and the things in it that are named."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from penstock.app import Project
from penstock.cli.parser import LARGEST_ID
from penstock.errors import Remedy, StoreError, UsageError
from penstock.private_files import make_private
from penstock.settings import find_project
from penstock.snapshots.directory import private_folder
from penstock.store.sqlite.database import files_of, translated


@contextmanager
def opened(args: argparse.Namespace, is_validated: bool = False) -> Iterator[Project]:
    """The project the command line means, closed at the end; its secrets are masked from here on.

    With `is_validated` every pipeline is imported and checked; looking needs none of that. One that can't
    be loaded is named, and the others go on.
    """
    place = args.project if args.project is not None else find_project(Path.cwd())
    project = Project.open(place, args.env)
    args.out.secrets = project.settings.secrets
    for warning in project.settings.warnings:
        args.out.note(f"penstock: {warning}")
    for path in make_private(_files(project)):
        args.out.note(f"penstock: {path} could be read by everybody; only its owner can now")
    if is_validated:
        for error in project.validate_what_loads().values():
            args.out.note(f"left out until `penstock up` is restarted: {error.message}")
    with project, _explained(project):
        yield project


def _files(project: Project) -> list[Path]:
    """What of the project holds data and lies on this machine."""
    settings = project.settings
    files = [] if settings.is_on_postgres else files_of(settings.store_file.resolve())
    if isinstance(settings.snapshots, Path):
        files += private_folder(settings.snapshots)
    return files


def _explained(project: Project) -> AbstractContextManager[None]:
    """A file that breaks while it is looked at is told in our words; a server's store has its own way."""
    settings = project.settings
    return nullcontext() if settings.is_on_postgres else translated(settings.store_file)


def source_key(project: Project, name: str | None) -> str | None:
    """The key of a source that is configured, or was once and left its history."""
    return project.source_key(name)


def run_or_source(project: Project, target: str) -> int | str:
    """A number means a run, unless a source has it for a name."""
    if target.isdecimal() and target not in project.settings.sources:
        if len(target) > len(str(LARGEST_ID)) or int(target) > LARGEST_ID:
            raise UsageError(f"there is no run {target:.40}", remedy=Remedy("runs.list"))
        return int(target)
    return target


def require_database(project: Project) -> None:
    """Refuse to make a new database where an existing one is meant."""
    settings = project.settings
    if not settings.is_on_postgres and not settings.store_file.exists():
        raise StoreError(
            f"there is no database at {settings.store_name} yet", "penstock run makes it"
        )
