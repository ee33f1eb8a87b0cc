"""Finding the project that a command is about, and the things in it that are named."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.app import Project
from penstock.app.entry import open_project, protect_files, store_errors_explained
from penstock.app.guard import guarded_name
from penstock.cli.parser import LARGEST_ID
from penstock.cli.render.service_log import choose_format
from penstock.errors import Remedy, UsageError


@contextmanager
def opened(args: argparse.Namespace, is_validated: bool = False) -> Iterator[Project]:
    """The project the command line means, closed at the end; its secrets are masked from here on.

    With `is_validated` every pipeline is imported and checked; looking needs none of that. One that can't
    be loaded is named, and the others go on.
    """
    args.out.logs_json = getattr(args, "log_format", None) == "json"
    project = open_project(args.project, args.env)
    args.out.secrets = project.settings.secrets
    args.guarded = guarded_name(project)
    project.includes_private = getattr(args, "include_private", False)
    choose_format(project, args)
    for warning in project.settings.warnings:
        args.out.note(f"penstock: {warning}")
    for path in protect_files(project):
        args.out.note(f"penstock: {path} could be read by everybody; only its owner can now")
    if is_validated:
        for error in project.validate_what_loads().values():
            args.out.note(f"left out until `penstock up` is restarted: {error.message}")
    with project, store_errors_explained(project):
        yield project


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
