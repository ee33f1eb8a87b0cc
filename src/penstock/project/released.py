"""A release to work with: its own files, opened on the store and the snapshots of the project at home.

Whoever loads it is a process of its own: two versions of one module can't be in one interpreter.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock.project import Project
from penstock.project.release_folder import release_settings


def open_released(home: Path, environment: str | None, release: str) -> Project:
    """The project as the release has it. Files that sources read are those of home."""
    own = Project.open(home, environment)
    try:
        found = release_settings(own, release)
    finally:
        own.close()
    known = own.settings.sources
    sources = {key: each for key, each in found.sources.items() if key in known}
    project = Project(replace(found, sources=sources))
    project.data_root = own.settings.root
    return project
