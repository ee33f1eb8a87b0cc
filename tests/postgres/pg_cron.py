"""A Postgres with pg_cron: 15 with 1.4, and 17 with 1.6.

The first are Debian's own programs, beside a pg_cron that need not be installed. Programs of Postgres find
their libraries and extensions by where they lie themselves. So its few programs are copied, everything that
is beside them is linked, and the files of pg_cron are added. The second are those of a newer Debian, which
run by that Debian's loader and C library.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests import programs
from tests.postgres.fixtures import missing
from tests.postgres.installations import Installation
from tests.postgres.workspace import Workspace

MAJOR = 15
LIBRARIES, SHARED = Path("lib/postgresql/15"), Path("share/postgresql/15")
PROGRAMS = ("postgres", "initdb")
NEWER = 17
RUN_BY_ITS_LOADER = """\
#!/bin/sh
exec {loader} --library-path {libraries} --argv0 "$0" {program} "$@"
"""
# Jobs connect like clients: a background worker of Postgres 15 may be forked in a signal's handler, where
# libfaketime shows the true time.
SETTINGS = """
shared_preload_libraries = 'pg_cron'
cron.database_name = '{database}'
cron.use_background_workers = off
cron.host = '127.0.0.1'
"""


def postgres_with_cron(workspace: Workspace) -> Installation:
    """The programs, made once for the run."""
    added = programs.unpacked("postgresql-15-cron")
    # Where the system has no Postgres 15, the package of pg_cron brought one with it.
    trees = [each / "usr" for each in (Path("/"), added)]
    found = [each for each in trees if (each / LIBRARIES / "bin" / "postgres").exists()]
    if not found:
        missing("Debian's Postgres 15, for pg_cron", "apt-get install postgresql-15")

    def make() -> dict[str, Any]:
        workspace.programs.mkdir(exist_ok=True)
        workspace.programs.chmod(0o755)
        folder = workspace.programs / "postgres-with-cron"
        _make(folder, found[0], added)
        return {"bin": str(folder / LIBRARIES / "bin")}

    return Installation(MAJOR, Path(workspace.once("postgres-with-cron", make)["bin"]))


def _make(folder: Path, system: Path, added: Path) -> None:
    for name in PROGRAMS:
        target = folder / LIBRARIES / "bin" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(system / LIBRARIES / "bin" / name, target)
    for place in (LIBRARIES / "lib", SHARED, SHARED / "extension"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        for each in (system / place).iterdir():
            if each.name != "extension":
                os.symlink(each, folder / place / each.name)
    for place in (LIBRARIES / "lib", SHARED / "extension"):
        for each in (added / "usr" / place).iterdir():
            if each.is_file():
                shutil.copy(each, folder / place / each.name)


def newer_postgres_with_cron(workspace: Workspace) -> Installation:
    """The programs of the newer Debian, made once for the run."""
    added = programs.unpacked("postgresql-17-cron") / "usr"

    def make() -> dict[str, Any]:
        workspace.programs.mkdir(exist_ok=True)
        workspace.programs.chmod(0o755)
        folder = workspace.programs / "newer-postgres-with-cron"
        _make_newer(folder, added)
        return {"bin": str(folder / "lib/postgresql/17/bin")}

    made = workspace.once("newer-postgres-with-cron", make)
    return Installation(NEWER, Path(made["bin"]))


def _make_newer(folder: Path, added: Path) -> None:
    [loader] = added.glob("lib/*-linux-gnu/ld-linux-*.so.*")
    libraries = loader.parent.relative_to(added)
    for place in (libraries, Path("lib/postgresql/17"), Path("share/postgresql")):
        unwanted = shutil.ignore_patterns("bitcode", "locale", "gconv")
        shutil.copytree(added / place, folder / place, symlinks=True, ignore=unwanted)
    for name in PROGRAMS:
        launcher = folder / "lib/postgresql/17/bin" / name
        program = launcher.rename(launcher.with_suffix(".elf"))
        words = {"loader": folder / libraries / loader.name, "libraries": folder / libraries}
        launcher.write_text(RUN_BY_ITS_LOADER.format(program=program, **words))
        launcher.chmod(0o755)


def clock_at(workspace: Workspace, moment: datetime) -> dict[str, str]:
    """The environment of a server whose clock shows this moment now, and goes on from there."""
    [library] = programs.unpacked("libfaketime").glob(programs.LIBRARIES["libfaketime"].path)

    def copy() -> dict[str, Any]:
        workspace.programs.mkdir(exist_ok=True)
        workspace.programs.chmod(0o755)
        return {"file": str(shutil.copy(library, workspace.programs))}

    file = workspace.once("libfaketime", copy)["file"]
    ahead = moment - datetime.now(UTC)
    return {
        "LD_PRELOAD": file,
        "FAKETIME": f"{ahead.total_seconds():+.3f}",
        "DONT_FAKE_MONOTONIC": "1",
    }
