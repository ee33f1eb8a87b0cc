"""A Postgres of the tests' own: a cluster in the run's workspace, on loopback and on a Unix socket.

Tests come in as `penstock`, an ordinary role without a password that owns its databases and nothing else:
what needs more rights than an operator would give must not work here. `secretive` is its like, with a
password. The superuser comes in by the socket alone, in a folder that is closed to others.

Nothing is synced to the disk: a crash of Postgres loses nothing by that, only one of the machine would.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.postgres.installations import Installation, within_reach
from tests.postgres.ports import free_port
from tests.postgres.workspace import NOTHING, Workspace, launch, run, until

SUPERUSER = "postgres"
ROLE = "penstock"
ROLE_WITH_PASSWORD = "secretive"
PASSWORD = "correct horse/battery@staple"

# A time zone that no reckoning gets right by accident; the log stays in UTC.
SETTINGS = """
listen_addresses = '127.0.0.1'
max_connections = 200
shared_buffers = 128MB
fsync = off
full_page_writes = off
timezone = 'Pacific/Chatham'
log_timezone = 'UTC'
log_lock_waits = on
"""
WHO_MAY_COME_IN = f"""
local all,replication {SUPERUSER} trust
host all {ROLE_WITH_PASSWORD} 127.0.0.1/32 scram-sha-256
host all {ROLE} 127.0.0.1/32 trust
"""
PORT_IS_TAKEN = "could not create any TCP/IP sockets"
PORTS_TO_TRY = 5


class StoodDown(Exception):
    """A server ended while it was being started; what it said last is the message."""


@dataclass
class Server:
    """One Postgres. `Server.start` makes it; the run's workspace ends it if nobody did before.

    A shared one serves other tests at the same moment, so only a server of one's own can be stopped.
    """

    installation: Installation
    workspace: Workspace
    folder: Path
    port: int
    # Lines of postgresql.conf that come after SETTINGS, and so win.
    settings: str = ""
    # Beside what every server has.
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def start(
        cls,
        installation: Installation,
        workspace: Workspace,
        settings: str = "",
        environment: Mapping[str, str] = NOTHING,
    ) -> Server:
        """Make a cluster in a new folder of the workspace, and start it."""
        folder = workspace.folder(str(installation))
        reached = within_reach(installation, workspace)
        server = cls(reached, workspace, folder, free_port(), settings, environment)
        server._make_cluster()
        server._start_on_a_free_port()
        server._make_roles()
        return server

    @classmethod
    def shared(cls, installation: Installation, workspace: Workspace) -> Server:
        """The one server of this version for the whole run; the first xdist worker to ask starts it."""

        def start() -> dict[str, Any]:
            made = cls.start(installation, workspace)
            return {
                "bin": str(made.installation.bin),
                "folder": str(made.folder),
                "port": made.port,
            }

        seen = workspace.once(str(installation), start)
        reached = Installation(installation.major, Path(seen["bin"]))
        return cls(reached, workspace, Path(seen["folder"]), seen["port"])

    # Coming in.

    def url(self, database: str, user: str = ROLE) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def url_with_password(self, database: str, password: str = PASSWORD) -> str:
        return self.url(database, f"{ROLE_WITH_PASSWORD}:{quote(password, safe='')}")

    def admin_url(self, database: str = "postgres") -> str:
        return (
            f"postgresql://{SUPERUSER}@/{database}?host={quote(str(self.folder))}&port={self.port}"
        )

    def admin(
        self, statement: LiteralString | sql.Composed, database: str = "postgres"
    ) -> list[Any]:
        """Run one statement as the superuser, outside any transaction, and give back its rows."""
        with psycopg.connect(self.admin_url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def version(self) -> str:
        [[version]] = self.admin("SHOW server_version")
        return str(version)

    # Databases.

    def create_database(self, name: str, template: str = "template0") -> str:
        """Make a database in some ten milliseconds, and give back its URL. Nobody may be in the template."""
        words = "CREATE DATABASE {} TEMPLATE {} OWNER {}"
        if self.installation.major >= 15:
            words += " STRATEGY file_copy"
        parts = map(sql.Identifier, (name, template, ROLE))
        self.admin(sql.SQL(words).format(*parts))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database with everybody who is in it."""
        self.admin(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    # Up and down.

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """As `pg_ctl stop -m immediate`, a crash in all but name; with SIGINT as `-m fast`."""
        self._own.send_signal(how)
        self._own.wait()

    def start_again(self) -> None:
        """Start what was stopped, on the same port; back when it takes connections."""
        self._own.wait()
        self._launch()

    def restart_immediate(self) -> None:
        """As `pg_ctl restart -m immediate`: every connection is cut, the server recovers from its log."""
        self.stop()
        self.start_again()

    def close(self) -> None:
        """Stop it for good, and remove its files."""
        self.stop()
        shutil.rmtree(self.folder)

    def make_standby(self) -> Server:
        """A hot standby of this server as it is now; everything it is told later follows."""
        folder = self.workspace.folder(f"{self.installation}-standby")
        standby = Server(self.installation, self.workspace, folder, free_port())
        source = ["-h", self.folder, "-p", self.port, "-U", SUPERUSER]
        options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        self._run("pg_basebackup", *source, *options, "-D", standby._data, folder=folder)
        standby._start_on_a_free_port()
        return standby

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _own(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise AssertionError(
                "other tests are on this server; ask for `own_postgres` to disturb one"
            )
        return self._process

    def _run(self, program: str, *arguments: object, folder: Path | None = None) -> None:
        run([self.installation.bin / program, *arguments], folder or self.folder)

    def _make_cluster(self) -> None:
        options = ["-D", self._data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-sync"]
        try:
            # Where it can be had: an order that is not the order of bytes, as on most servers.
            self._run("initdb", *options, "--locale-provider=icu", "--icu-locale=en")
        except RuntimeError:
            self._run("initdb", *options)
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS + self.settings)
        (self._data / "pg_hba.conf").write_text(WHO_MAY_COME_IN)

    def _make_roles(self) -> None:
        self.admin(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(ROLE)))
        words = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
        names = sql.Identifier(ROLE_WITH_PASSWORD), sql.Literal(PASSWORD), sql.Identifier(ROLE)
        self.admin(words.format(*names))

    def _start_on_a_free_port(self) -> None:
        for _ in range(PORTS_TO_TRY):
            try:
                return self._launch()
            except StoodDown as last:
                if PORT_IS_TAKEN not in str(last):
                    raise
                self.port = free_port()
        raise AssertionError(f"tried {PORTS_TO_TRY} ports, and every one was taken meanwhile")

    def _launch(self) -> None:
        program: list[object] = [self.installation.bin / "postgres", "-D", self._data]
        written = self.log.stat().st_size if self.log.exists() else 0
        command = [*program, "-p", self.port, "-k", self.folder]
        process = launch(command, self.folder, self.log, self.environment)
        self._process = process
        until("Postgres takes connections", lambda: self._is_ready() or process.poll() is not None)
        if process.poll() is not None:
            raise StoodDown(self.log.read_bytes()[written:].decode(errors="replace"))

    def _is_ready(self) -> bool:
        """Postgres says so in its pid file, whose first line tells it from one that a crash left behind."""
        with suppress(FileNotFoundError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            return lines[:1] == [str(self._own.pid)] and lines[7:8] == ["ready   "]
        return False
