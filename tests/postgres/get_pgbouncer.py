"""Fetch Debian's PgBouncer into this environment, when the machine has none: `make setup` runs it.

The package is downloaded and unpacked, not installed: that needs no root, changes nothing outside .venv, and
starts no service on the developer's machine. apt keeps its lists in a folder of our own meanwhile, because
those of the system may be old, or missing, or not ours to write.

Never fails: what is missing is said here, and again by the tests, which do fail under CI.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.postgres.pgbouncer import FETCHED, HOW_TO_GET_IT, find_program

OPTIONS = [
    "--quiet=2",
    "--assume-yes",
    "--no-install-recommends",
    "--option=Debug::NoLocking=1",
    "--option=APT::Sandbox::User=",
    "--option=Acquire::Retries=1",
    "--option=Acquire::http::Timeout=20",
]


def main() -> int:
    if find_program() is None:
        print(f"Fetching PgBouncer into {sys.prefix} …")
        try:
            fetch(FETCHED)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"No PgBouncer: {_reason(error)}\n{HOW_TO_GET_IT}", file=sys.stderr)
    return 0 if find_program() else 1


def fetch(into: Path) -> None:
    """Lay the program and its libraries side by side, in one folder that can be moved."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / "unpacked"
        for package in download(Path(folder)):
            _run("dpkg-deb", "--extract", package, unpacked)
        into.mkdir(exist_ok=True)
        for found in (*unpacked.glob("usr/lib/*/*.so*"), *unpacked.glob("lib/*/*.so*")):
            shutil.copy(found, into)
        shutil.copy(unpacked / "usr" / "sbin" / "pgbouncer", into)


def download(folder: Path) -> list[Path]:
    """PgBouncer, and those of the libraries it needs that the system does not have."""
    for inside in ("lists/partial", "cache/archives/partial"):
        (folder / inside).mkdir(parents=True)
    places = [f"--option=Dir::State::lists={folder}/lists", f"--option=Dir::Cache={folder}/cache"]
    _run("apt-get", *OPTIONS, *places, "update")
    _run("apt-get", *OPTIONS, *places, "install", "--download-only", "pgbouncer")
    archives = folder / "cache" / "archives"
    return [*archives.glob("pgbouncer_*.deb"), *archives.glob("lib*.deb")]


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return str(said).strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
