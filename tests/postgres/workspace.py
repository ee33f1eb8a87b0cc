"""Where servers live that tests start: one folder for each run of pytest, and nothing outlasts the run.

Every server works inside that folder, so whatever has its working directory there is ours to end;
no list of process ids has to be kept, and none can be out of date. It is ended twice over: by the pytest
that made the folder, and by a keeper, a process of its own that waits for that pytest to be gone, however
it went. The folder is made when the first server is wanted: a run that wants none leaves no trace.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from penstock.prove.processes import rest_s

ROOT = Path(__file__).parents[2]
UNPRIVILEGED = ("postgres", "nobody")
MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 << 30
PATIENCE_S = 30.0
NOTHING: Mapping[str, str] = {}
# Held to the end: a Popen that is collected while its process runs complains of it.
LAUNCHED: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Workspace:
    """The folder of one run of pytest, shared by all its xdist workers."""

    path: Path
    owner_pid: int

    @classmethod
    def of_this_run(cls, on_disk: bool = False) -> Workspace:
        """Choose a folder that is not there yet; call it in the process whose end is the end of the run."""
        place = _temporary_folder() if on_disk else roomy_folder()
        return cls(place / f"penstock-test-{secrets.token_hex(4)}", os.getpid())

    @property
    def programs(self) -> Path:
        """Where programs are copied to that lie out of reach: in memory nothing may be executed."""
        return _temporary_folder() / f"{self.path.name}-programs"

    def once(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What the first xdist worker to ask makes and notes down; the others wait, and read the note."""
        self.make()
        note = self.path / f"{name}.json"
        with note.with_suffix(".lock").open("w") as lock:
            flock(lock, LOCK_EX)
            if not note.exists():
                note.write_text(json.dumps(make()))
        made: dict[str, Any] = json.loads(note.read_text())
        return made

    def folder(self, name: str) -> Path:
        """A new folder that belongs to the account that servers run as, and is closed to others."""
        self.make()
        path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.path))
        if who := account():
            os.chown(path, who.pw_uid, who.pw_gid)
        return path

    def make(self) -> None:
        with suppress(FileExistsError):
            self.path.mkdir()
            self.path.chmod(0o755)  # whatever the umask: servers have to walk through it
            self._post_keeper()

    def _post_keeper(self) -> None:
        # Its own session: Ctrl-C in the terminal must not reach it.
        command = [sys.executable, "-m", "tests.postgres.workspace"]
        keeper = subprocess.Popen(
            [*command, str(self.path), str(self.owner_pid)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        LAUNCHED.append(keeper)

    def copy_programs(self, folder: Path, name: str) -> Path:
        """Copy a folder, once, to where the servers' account may run what is in it."""

        def copy() -> dict[str, Any]:
            made = shutil.copytree(folder, self.programs / name, symlinks=True)
            for path in (self.programs, *self.programs.rglob("*")):
                if not path.is_symlink():
                    mode = path.stat().st_mode
                    path.chmod(mode | (0o055 if mode & 0o100 else 0o044))
            return {"folder": str(made)}

        return Path(self.once(f"copied-{name.replace('/', '-')}", copy)["folder"])

    def close(self) -> None:
        """End everything that runs inside the folder, and remove it."""
        end_everything_in(self.path)
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.rmtree(self.programs, ignore_errors=True)


def roomy_folder() -> Path:
    """In memory where there is room: making a database is 400 files, and a busy disk takes 0.2 s for them."""
    try:
        has_room = shutil.disk_usage(MEMORY).free >= ROOM_BYTES and os.access(MEMORY, os.W_OK)
    except FileNotFoundError:
        has_room = False
    return MEMORY if has_room else _temporary_folder()


def _temporary_folder() -> Path:
    chosen = Path(tempfile.gettempdir()).resolve()
    return chosen if can_be_reached(chosen) else Path("/tmp")


# Servers refuse to be root, and who is not root can only be himself.


def account() -> pwd.struct_passwd | None:
    """Whom servers run as when we are root; None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError(f"root needs another account to run servers as: {' or '.join(UNPRIVILEGED)}")


def can_be_reached(path: Path) -> bool:
    """Whether the account that servers run as may walk down to this path."""
    if account() is None:
        return os.access(path, os.X_OK)
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def run(command: Sequence[object], folder: Path) -> str:
    """Run a command to its end inside a server's folder; when it fails, fail with all that it said."""
    ended: subprocess.CompletedProcess[str] = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **_as_account(),
    )
    if ended.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{ended.stdout}")
    return ended.stdout


def launch(
    command: Sequence[object], folder: Path, log: Path, environment: Mapping[str, str] = NOTHING
) -> subprocess.Popen[bytes]:
    """Start a server inside its folder. It lives until it is ended: by its maker, or with the run."""
    with log.open("ab") as said:
        server: subprocess.Popen[bytes] = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            env={**_environment(folder), **environment},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            **_as_account(),
        )
    LAUNCHED.append(server)
    return server


def _environment(folder: Path) -> dict[str, str]:
    # Not ours: a PGPORT or a HOME of the developer would find its way into the servers.
    return {"PATH": os.defpath, "HOME": str(folder), "LC_ALL": "C", "TZ": "UTC"}


def _as_account() -> dict[str, Any]:
    who = account()
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if who else {}


def until(what: str, holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Look again and again until it holds; fail with what was waited for."""
    looked_at = began_at = time.monotonic()
    while not holds():
        now = time.monotonic()
        if now > began_at + patience_s:
            raise TimeoutError(f"waited {patience_s:g} s for this: {what}")
        time.sleep(rest_s(now - looked_at, now - began_at))
        looked_at = time.monotonic()


# The end.


def living_in(folder: Path) -> list[int]:
    """The processes whose working directory is inside the folder."""
    found = []
    for cwd in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if cwd.readlink().is_relative_to(folder):
                found.append(int(cwd.parent.name))
    return found


def end_everything_in(folder: Path) -> None:
    """SIGQUIT first: Postgres then leaves at once, and takes its shared memory with it."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        for pid in living_in(folder):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        with suppress(TimeoutError):
            until("the servers of the tests are gone", lambda: not living_in(folder), 5)


def keep_until_its_owner_is_gone(workspace: Workspace) -> None:
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(workspace.owner_pid)], [], [])
    workspace.close()


if __name__ == "__main__":
    keep_until_its_owner_is_gone(Workspace(Path(sys.argv[1]), int(sys.argv[2])))
