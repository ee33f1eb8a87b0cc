"""Programs that tests run and pip does not have: PgBouncer, Chromium, Dovecot, Prometheus and promtool.

A program is the one that a variable such as $PENSTOCK_TEST_CHROMIUM names, or the system's, or the one that
`make setup` fetched into this environment. A test asks `needed("chromium")`: where it is missing the test is
skipped with how to get it, and fails under CI.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """A program, the Debian packages that bring it, and how to see that it runs."""

    title: str
    path: str  # in its package
    packages: tuple[str, ...]
    proof: tuple[str, ...] = ("--version",)
    # Where it does not run unpacked, root may install it. No service is started meanwhile.
    may_be_installed: bool = False

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def variable(self) -> str:
        """Whoever sets it means that program and no other."""
        return f"PENSTOCK_TEST_{self.name.upper()}"

    @property
    def fetched(self) -> Path:
        """The folder of this environment that `make setup` fetches it into."""
        return Path(sys.prefix) / self.packages[0]

    @property
    def how_to_get_it(self) -> str:
        return (
            f"install it (Debian: apt-get install {self.packages[0]}), or name its program in "
            f"{self.variable}, or run `make setup` where apt can reach its archive"
        )


HEADLESS = ("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "data:text/html,works")
PROGRAMS = {
    program.name: program
    for program in (
        Program("PgBouncer", "usr/sbin/pgbouncer", ("pgbouncer",)),
        Program("Prometheus", "usr/bin/prometheus", ("prometheus",)),
        # Its programs look for each other and for their modules in /usr/lib/dovecot, so only root has it.
        Program("Dovecot", "usr/sbin/dovecot", ("dovecot-imapd",), may_be_installed=True),
        Program("promtool", "usr/bin/promtool", ("prometheus",)),
        Program("Node.js", "usr/bin/node", ("nodejs",)),
        Program(
            "Chromium",
            "usr/lib/chromium/chromium",
            ("chromium", "fonts-dejavu-core"),  # without any font it does not start
            proof=HEADLESS,
            may_be_installed=True,
        ),
    )
}


def find(name: str) -> Path | None:
    """The program of that name: a key of PROGRAMS."""
    program = PROGRAMS[name]
    if chosen := os.environ.get(program.variable):
        return Path(chosen) if os.access(chosen, os.X_OK) else None
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", str(program.fetched)])
    found = shutil.which(name, path=places)
    return Path(found).resolve() if found else None


def needed(name: str) -> Path:
    """The program, for a test that can't do without it."""
    if found := find(name):
        return found
    from tests.postgres.fixtures import missing  # which needs pytest; the bench has none

    missing(PROGRAMS[name].title, PROGRAMS[name].how_to_get_it)


@dataclass(frozen=True)
class Library:
    """Files that a program of the system loads: the package of Debian's, and a file to know them by."""

    title: str
    package: str
    path: str
    # Of this release of Debian, with all packages that its programs need to run by its own loader.
    release: str = ""
    beside: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """Whoever sets it means the tree of files below it, as a package has it."""
        return f"PENSTOCK_TEST_{self.package.upper().replace('-', '_')}"

    @property
    def fetched(self) -> Path:
        return Path(sys.prefix) / self.package / "root"

    @property
    def how_to_get_it(self) -> str:
        if self.release:
            return (
                f"run `make torture` where apt can reach Debian's {self.release}, or name the folder that "
                f"{self.package} and what it needs are unpacked in, in {self.variable}"
            )
        return (
            f"install it (Debian: apt-get install {self.package}), or name the folder it is unpacked in, in "
            f"{self.variable}, or run `make setup` where apt can reach its archive"
        )


LIBRARIES = {
    library.package: library
    for library in (
        Library("pg_cron", "postgresql-15-cron", "usr/lib/postgresql/15/lib/pg_cron.so"),
        Library("libfaketime", "libfaketime", "usr/lib/*/faketime/libfaketime.so.1"),
    )
}

# What long tests alone need.
POSTGRES_17 = """
postgresql-17 postgresql-client-17 libc6 libaudit1 libcap-ng0 libcap2 libcom-err2 libcrypt1 libgcc-s1
libgcrypt20 libgpg-error0 libgssapi-krb5-2 libicu76 libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0
libldap2 liblz4-1 liblzma5 libpam0g libpcre2-8-0 libpq5 libsasl2-2 libselinux1 libssl3t64 libstdc++6
libsystemd0 libuuid1 libxml2 libxxhash0 libzstd1 zlib1g
"""
LONG_LIBRARIES = {
    library.package: library
    for library in (
        Library(
            "pg_cron 1.6",
            "postgresql-17-cron",
            "usr/lib/postgresql/17/lib/pg_cron.so",
            release="trixie",
            beside=tuple(POSTGRES_17.split()),
        ),
    )
}


def found_tree(package: str) -> Path | None:
    """The folder that this package's files lie below: the system's, or what was fetched."""
    library = {**LIBRARIES, **LONG_LIBRARIES}[package]
    chosen = os.environ.get(library.variable)
    system = [] if library.release else [Path("/")]
    trees = [Path(chosen)] if chosen else [*system, library.fetched]
    return next((tree for tree in trees if any(tree.glob(library.path))), None)


def unpacked(package: str) -> Path:
    """The same, for a test that can't do without it."""
    if found := found_tree(package):
        return found
    from tests.postgres.fixtures import missing

    library = {**LIBRARIES, **LONG_LIBRARIES}[package]
    missing(library.title, library.how_to_get_it)
