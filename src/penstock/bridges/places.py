"""Where a project is, so that a task in any process of an engine can open it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from penstock.app import Project
from penstock.app.entry import protect_files, store_errors_explained


@dataclass(frozen=True, slots=True)
class Place:
    """A project's folder and the environment whose settings hold; texts, so that engines can pass them on."""

    folder: str
    environment: str | None = None

    def open(self) -> Project:
        """Its settings only: enough to plan, and nothing of the store is opened."""
        return Project.open(self.folder, self.environment)

    @contextmanager
    def opened(self) -> Iterator[Project]:
        """The project for one task, closed at its end. Its files stay its owner's, as with commands."""
        project = self.open()
        protect_files(project)
        with project, store_errors_explained(project):
            yield project


# As factories are given it: opened already, or its folder (or its penstock.yaml).
ProjectPlace: TypeAlias = Project | Place | str | os.PathLike[str]


def place_of(project: ProjectPlace) -> Place:
    """Where this is, as an absolute path: a task may run in another folder."""
    if isinstance(project, Place):
        return project
    if isinstance(project, Project):
        return Place(str(project.settings.root.absolute()), project.settings.environment)
    return Place(str(Path(project).absolute()))
