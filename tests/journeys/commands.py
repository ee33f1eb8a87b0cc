"""Commands that are run to their end, each in a process of its own, without the wait for Python's imports.

    python commands.py CONTROL        serves on a socket that it inherits, until the other end is closed

A journey runs a dozen commands, and each would spend a quarter of a second on importing what the one before
had imported. So one process imports all of it, has one thread and opens nothing, and is forked for every
command. What a journey starts in order to kill or to signal it, to read along, or to give it a terminal, is
started as an operator would (`Rig.start`, and `start` in `test_cli.py`).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

# What the demonstrations run in a project of their own, what is no module to be imported, and what needs an
# orchestrator.
NOT_OURS = (
    "penstock.demo.first",
    "penstock.demo.project",
    "penstock.__main__",
    "penstock.bridges.airflow",
    "penstock.bridges.dagster",
    "penstock.bridges.prefect",
)
LONGEST_REQUEST = 1 << 20
# Held to the end: a Popen that is collected while its process runs complains of it.
LAUNCHED: list[subprocess.Popen[bytes]] = []


def run_command(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], within_s: float
) -> subprocess.CompletedProcess[str]:
    """What `python -m penstock WORDS` comes to in this folder."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, ours:
        with theirs:
            socket.send_fds(_server(), [b"."], [theirs.fileno(), out.fileno(), err.fileno()])
        request = {"words": words, "folder": str(folder), "environment": dict(environment)}
        ours.sendall(json.dumps(request).encode() + b"\n")
        ours.settimeout(within_s)
        with ours.makefile() as answers:
            pid = int(answers.readline())
            try:
                code = int(answers.readline())
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(words), within_s) from None
        return subprocess.CompletedProcess(list(words), code, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@cache
def _server() -> socket.socket:
    """The process that is forked; it ends with the one that asks for it first."""
    from tests.journeys.rig import ENVIRONMENT

    ours, theirs = socket.socketpair()
    command = [sys.executable, __file__, str(theirs.fileno())]
    LAUNCHED.append(
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, env=ENVIRONMENT, pass_fds=[theirs.fileno()]
        )
    )
    theirs.close()
    return ours


# In the process that is forked.


def serve(control: socket.socket) -> None:
    """Fork for each command that is asked for. Returns in the process of a command, to run it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        asked, descriptors, _, _ = socket.recv_fds(control, 1, 3)
        if not asked:
            sys.exit()
        if os.fork() == 0:
            control.close()
            return watch(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def watch(channel: int, out: int, err: int) -> None:
    """Fork once more; tell who asked which process it is, and how it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=channel) as answers, answers.makefile("rb") as requests:
        request = json.loads(requests.readline(LONGEST_REQUEST))
        if (pid := os.fork()) == 0:
            return become(request, out, err)
        answers.sendall(f"{pid}\n".encode())
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):  # who asked has waited long enough
            answers.sendall(f"{ended}\n".encode())
    os._exit(0)


def become(request: dict[str, object], out: int, err: int) -> None:
    """As if this process had been started with these words, in this folder."""
    words, folder, environment = request["words"], request["folder"], request["environment"]
    assert isinstance(words, list)
    assert isinstance(folder, str)
    assert isinstance(environment, dict)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    sys.argv = ["penstock", *words]


def import_everything() -> None:
    import penstock

    import_all(penstock.__path__, "penstock.")
    # Everything there is now is there for good: no collection in a fork has to touch it.
    gc.collect()
    gc.freeze()


def import_all(path: Iterable[str], prefix: str) -> None:
    for module in pkgutil.iter_modules(path, prefix):
        # An orchestrator's environment has few extras; a command that needs another says so.
        with suppress(ModuleNotFoundError):
            if not module.name.startswith(NOT_OURS):
                found = importlib.import_module(module.name)
                import_all(getattr(found, "__path__", ()), f"{module.name}.")


if __name__ == "__main__":
    import_everything()
    serve(socket.socket(fileno=int(sys.argv[1])))
    from penstock.cli import main

    sys.exit(main())
