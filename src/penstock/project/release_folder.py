"""A release as files again: its folder, and the settings of a project that is run from there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from penstock.errors import UsageError
from penstock.releases.manifest import SHOWN, changed, hash_of
from penstock.settings import Settings, load_settings
from penstock.settings.address import SQLITE
from penstock.settings.dotenv import read_dotenv

if TYPE_CHECKING:
    from penstock.project.opened import Opened
    from penstock.store.releases import ReleaseRow

# Beside penstock.yaml; hidden, so that no pattern of files means it.
FOLDER = ".penstock"


def release_folder(project: Opened, release: str) -> Path:
    """The folder with the files of this release, written when it is first asked for; each file is checked."""
    store = project.connection.releases
    row = store.get(release)
    if row is None:
        raise UsageError(f"there is no release {release[:SHOWN]}", code="no_release")
    folder = project.settings.root / FOLDER / "releases" / release
    if not _is_whole(folder, row):
        contents = store.contents(row, set(row.manifest.files.values()))
        _place(folder, {name: contents[each] for name, each in row.manifest.files.items()})
    return folder


def release_settings(project: Opened, release: str) -> Settings:
    """The settings of the release for this environment: its code and configuration, and this project's data.

    Variables come from the environment and from `.env` beside the project's own penstock.yaml.
    """
    own = project.settings
    folder = release_folder(project, release)
    environ = {**read_dotenv(own.root).values, **os.environ}
    found = load_settings(folder / own.file.name, own.environment_name, environ)
    store = own.store if own.is_on_postgres else f"{SQLITE}{own.store_file}"
    return replace(
        found,
        project=own.project,
        store=store,
        snapshots=own.snapshots,
        secrets=found.secrets | own.secrets,
    )


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder, each whole or not at all."""
    for name, content in files.items():
        target = folder.joinpath(*_parts(name))
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".penstock-")
        with open(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)


def files_to_write(
    folder: Path, row: ReleaseRow, contents: Mapping[str, bytes]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of a release that a folder lacks, and those that it has otherwise."""
    adds, overwrites = {}, {}
    for name, known in row.manifest.files.items():
        file = folder.joinpath(*_parts(name))
        if not file.exists():
            adds[name] = contents[known]
        elif not file.is_file() or file.read_bytes() != contents[known]:
            if any(each.startswith(f"{name}: ") for each in row.manifest.masked):
                continue  # its secrets were left out: what is there has them
            overwrites[name] = contents[known]
    return adds, overwrites


def _is_whole(folder: Path, row: ReleaseRow) -> bool:
    """Whether every file is there as the release has it: somebody may have changed one."""
    try:
        return all(
            hash_of(folder.joinpath(*_parts(name)).read_bytes()) == known
            for name, known in row.manifest.files.items()
        )
    except OSError:
        return False


def _place(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files beside, then give them their name: another process may do the same."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        write_files(made, files)
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not folder.exists():
            raise


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a path in a release, which must not lead out of its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise changed(f"a release has a file {name!r:.80}, which is not below its folder")
    return path.parts
