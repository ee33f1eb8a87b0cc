"""Fetch the programs that tests run into this environment, where the machine has none: `make setup` runs it.

Exits with 1 where one is missing afterwards. It says so here, and the tests say it again; under CI they fail.
With the word `long` it fetches what long tests alone need: `make torture` does that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tests import debian
from tests.programs import (
    LIBRARIES,
    LONG_LIBRARIES,
    PROGRAMS,
    Library,
    Program,
    find,
    found_tree,
)

PATIENCE_S = 120


def main() -> int:
    if sys.argv[1:] == ["long"]:
        for library in LONG_LIBRARIES.values():
            if not found_tree(library.package):
                get_library(library)
        return 0 if all(map(found_tree, LONG_LIBRARIES)) else 1
    for package in dict.fromkeys(program.packages for program in PROGRAMS.values()):
        wanted = [program for program in PROGRAMS.values() if program.packages == package]
        if not all(find(program.name) for program in wanted):
            get(wanted)
    for library in LIBRARIES.values():
        if not found_tree(library.package):
            get_library(library)
    return 0 if all(map(find, PROGRAMS)) and all(map(found_tree, LIBRARIES)) else 1


def get(programs: list[Program]) -> None:
    """Unpack the package of these programs; install it where that does not run and root may."""
    title = programs[0].title
    print(f"Fetching {title} into {sys.prefix} …", flush=True)
    try:
        debian.fetch(programs[0].packages, [each.path for each in programs], programs[0].fetched)
        for program in programs:
            prove(program)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(programs[0].fetched, ignore_errors=True)
        if not (programs[0].may_be_installed and install(programs[0])):
            said = f"No {title}: {debian.reason(error)}\n{programs[0].how_to_get_it}"
            print(said, file=sys.stderr)


def get_library(library: Library) -> None:
    """Unpack what a program of the system loads."""
    into = library.fetched.parent
    print(f"Fetching {library.title} into {into} …", flush=True)
    try:
        if library.release:
            debian.fetch_of(library.release, (library.package, *library.beside), into)
        else:
            debian.fetch((library.package,), (), into)
    except (OSError, subprocess.SubprocessError) as error:
        said = f"No {library.title}: {debian.reason(error)}\n{library.how_to_get_it}"
        print(said, file=sys.stderr)


def prove(program: Program) -> None:
    """Run what was fetched, once: it may lack a library that no package names."""
    command = [str(program.fetched / program.name), *program.proof]
    subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def install(program: Program) -> bool:
    if os.geteuid() != 0:
        return False
    try:
        debian.install(program.packages)
    except (OSError, subprocess.SubprocessError):
        return False
    return find(program.name) is not None


if __name__ == "__main__":
    sys.exit(main())
