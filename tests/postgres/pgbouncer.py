"""A real PgBouncer before the tests' Postgres, in transaction mode: what relies on a session breaks here.

`tests.programs` says which program that is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from tests.postgres.ports import at_port, free_port
from tests.postgres.server import PASSWORD, ROLE, ROLE_WITH_PASSWORD, SUPERUSER, Server, StoodDown
from tests.postgres.workspace import Workspace, can_be_reached, launch, until

PORT_IS_TAKEN = "cannot listen"
PORTS_TO_TRY = 5

# Otherwise its own settings: a start-up parameter that it does not know is refused. Only the retry is shorter
# than its 15 s, in which nobody would get in after a restart of the server.
SETTINGS = """
[databases]
* = host=127.0.0.1 port={server_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
admin_users = {admin}
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_login_retry = 1
"""
# From 1.21 on it can follow prepared statements; before, what relies on them breaks.
NO_PREPARED_STATEMENTS = "max_prepared_statements = 0\n"


def within_reach(program: Path, workspace: Workspace) -> Path:
    """The program where the servers' account may run it, with what was fetched beside it."""
    if can_be_reached(program.parent):
        return program
    return workspace.copy_programs(program.parent, "pgbouncer") / program.name


@dataclass
class PgBouncer:
    """One PgBouncer before one server; `through` leads a database's URL by way of it."""

    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def start(cls, program: Path, server: Server) -> PgBouncer:
        bouncer = cls(server.workspace.folder("pgbouncer"), free_port())
        bouncer._start_on_a_free_port(within_reach(program, server.workspace), server.port)
        return bouncer

    @classmethod
    def shared(cls, program: Path, server: Server) -> PgBouncer:
        """The one PgBouncer before a shared server; the first xdist worker to ask starts it."""

        def start() -> dict[str, Any]:
            made = cls.start(program, server)
            return {"folder": str(made.folder), "port": made.port}

        seen = server.workspace.once(f"pgbouncer-{server.port}", start)
        return cls(Path(seen["folder"]), seen["port"])

    def through(self, url: str) -> str:
        return at_port(url, self.port)

    def admin(self, statement: LiteralString) -> list[Any]:
        """A command of PgBouncer's own console: `SHOW POOLS`, `PAUSE`, `RECONNECT`."""
        console = f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/pgbouncer"
        with psycopg.connect(console, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """End it at once, with all its connections."""
        if self._process is None:
            raise AssertionError("other tests are on this PgBouncer; start one to disturb it")
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def _start_on_a_free_port(self, program: Path, server_port: int) -> None:
        for _ in range(PORTS_TO_TRY):
            self._configure(program, server_port)
            try:
                return self._launch(program)
            except StoodDown as last:
                if PORT_IS_TAKEN not in str(last):
                    raise
                self.port = free_port()
        raise AssertionError(f"tried {PORTS_TO_TRY} ports, and every one was taken meanwhile")

    def _configure(self, program: Path, server_port: int) -> None:
        names = {ROLE: "", SUPERUSER: "", ROLE_WITH_PASSWORD: PASSWORD}
        users = "".join(f'"{name}" "{password}"\n' for name, password in names.items())
        _write(self.folder / "users", users)
        settings = SETTINGS.format(
            server_port=server_port, port=self.port, folder=self.folder, admin=SUPERUSER
        )
        if _version(program) >= (1, 21):
            settings += NO_PREPARED_STATEMENTS
        _write(self.folder / "pgbouncer.ini", settings)

    def _launch(self, program: Path) -> None:
        written = self.log.stat().st_size if self.log.exists() else 0
        process = launch([program, "pgbouncer.ini"], self.folder, self.log, _libraries(program))
        self._process = process
        until("PgBouncer listens", lambda: self._listens() or process.poll() is not None)
        if process.poll() is not None:
            raise StoodDown(self.log.read_bytes()[written:].decode(errors="replace"))

    def _listens(self) -> bool:
        try:
            self.admin("SHOW VERSION")
        except psycopg.OperationalError:
            return False
        return True


def _libraries(program: Path) -> dict[str, str]:
    # What was fetched has the libraries that the system lacks beside it.
    return {"LD_LIBRARY_PATH": str(program.parent)}


def _version(program: Path) -> tuple[int, ...]:
    said = subprocess.run(
        [program, "--version"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **_libraries(program)},
    )
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said.stdout)
    assert found, said.stdout
    return tuple(map(int, found.groups()))


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(
        0o644
    )  # whatever the umask: another account has to read it, and the folder is closed
