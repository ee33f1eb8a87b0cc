"""The web server of `penstock up --web`: its own process, so that a busy one takes nothing from the work.

What it says is read by a thread and handed on. It ends with this process, also when that is killed: it reads
a pipe that only this process holds. One that ends by itself is started again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import Refused

if TYPE_CHECKING:
    from penstock.app import Project

LISTENING = "listening on "
# What `penstock web` calls these options is `--web-…` here.
OPTION = re.compile(r"--(port|host|origin|tls-certificate|tls-key|mcp-allow)\b")
# How long to wait before it is started again: longer each time that it has ended.
FIRST_S, LONGEST_S = 1.0, 60.0
# It is given this long to finish what it answers.
STOPPING_S = 10.0


@contextmanager
def web_beside(
    project: Project, args: argparse.Namespace, tell: Callable[[str], None]
) -> Iterator[None]:
    """While this lasts, the API and the dashboard are served, if the command line asks for them."""
    if not args.web:
        yield
        return
    process = WebProcess(_command(project, args), tell)
    process.start()
    try:
        yield
    finally:
        process.stop()


def _command(project: Project, args: argparse.Namespace) -> list[str]:
    settings = project.settings
    command = [sys.executable, "-P", "-m", "penstock", "web", "--beside", "--host", args.web_host]
    command += ["--port", str(args.web_port), "--project", str(settings.root)]
    command += ["--mcp-allow", args.web_mcp_allow]
    for origin in args.web_origin:
        command += ["--origin", origin]
    for option, value in (
        ("--tls-certificate", args.web_tls_certificate),
        ("--tls-key", args.web_tls_key),
        ("--env", settings.environment),
    ):
        command += [option, str(value)] if value else []
    # A log is read by others, and kept: the link that logs in is for a person's terminal.
    return command if args.out.stderr.isatty() else [*command, "--no-link"]


class WebProcess:
    """One server, started again whenever it ends by itself."""

    def __init__(self, command: Sequence[str], tell: Callable[[str], None]) -> None:
        self._command = command
        self._tell = tell
        self._stopping = threading.Event()
        self._decided = threading.Event()
        self._is_listening = False
        self._said: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="web", daemon=True)

    def start(self) -> None:
        """Answers when it listens; raises with what it says if it does not."""
        self._thread.start()
        self._decided.wait()
        if not self._is_listening:
            self._thread.join()
            first, *rest = self._said or ["it said nothing"]
            message = f"the web server can't start: {first.removeprefix('penstock: ')}"
            hint = OPTION.sub(r"--web-\1", " ".join(rest).strip())
            raise Refused(message, hint, code="web_not_started")

    def stop(self) -> None:
        self._stopping.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.terminate()
        self._thread.join(STOPPING_S)
        if process is not None and self._thread.is_alive():
            process.kill()
            self._thread.join()

    def _work(self) -> None:
        wait_s = FIRST_S
        while not self._stopping.is_set():
            code = self._serve()
            if not self._is_listening or self._stopping.is_set():
                break
            self._tell(
                f"the web server ended (exit code {code}); it starts again in {wait_s:.0f} s"
            )
            self._stopping.wait(wait_s)
            wait_s = min(2 * wait_s, LONGEST_S)
        self._decided.set()

    def _serve(self) -> int:
        with self._lock:
            if self._stopping.is_set():
                return 0
            self._process = process = subprocess.Popen(  # noqa: S603  our own interpreter and module
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="backslashreplace",
                # Ctrl-C is for us: it is stopped when the work has ended.
                start_new_session=True,
            )
        assert process.stdin is not None and process.stderr is not None  # noqa: S101, PT018  pipes
        with process.stdin, process.stderr:
            for line in process.stderr:
                self._hear(line.rstrip("\n"))
            return process.wait()

    def _hear(self, line: str) -> None:
        if self._is_listening or line.startswith(LISTENING):
            self._tell(f"web: {line}")
        else:
            self._said.append(line)
        if line.startswith(LISTENING):
            self._is_listening = True
            self._decided.set()
