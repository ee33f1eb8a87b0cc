"""The Postgres that everything is measured on: the tests' own, with what is committed on the disk."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres.installations import installations
from tests.postgres.server import Server
from tests.postgres.workspace import Workspace, can_be_reached

# Durable, as Postgres comes. The log may grow between checkpoints, so that none falls into one
# side's time and not into another's.
SETTINGS = """
fsync = on
full_page_writes = on
synchronous_commit = on
shared_buffers = 1GB
max_wal_size = 8GB
checkpoint_timeout = 30min
"""


def facts() -> str:
    """Which Postgres it is, and what is not as it comes."""
    program = installations()[0].bin / "postgres"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return f"{said.stdout.split()[-1]} ({', '.join(SETTINGS.strip().splitlines())})"


@contextmanager
def running(scratch: Path) -> Iterator[Server]:
    """Start a server beside the sources, yield it, and stop it."""
    scratch.mkdir(exist_ok=True)
    workspace = Workspace(scratch / f"postgres-{secrets.token_hex(4)}", os.getpid())
    if not can_be_reached(scratch):  # by the account that Postgres runs as
        workspace = Workspace.of_this_run(on_disk=True)
    try:
        yield Server.start(installations()[0], workspace, SETTINGS)
    finally:
        workspace.close()


@contextmanager
def database(server: Server) -> Iterator[str]:
    """A database for one side in one round: its address."""
    name = f"side_{secrets.token_hex(4)}"
    url = server.create_database(name)
    server.admin("CHECKPOINT")
    try:
        yield url
    finally:
        server.drop_database(name)
