"""A worker process as its supervisor sees it: started, talked to, listened to, ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from penstock.settings import Settings
from penstock.settings.secrets import masker_for
from penstock.store.rows import Admits

KILL_AFTER_S = 5.0
# What a worker said last is waited for this long: a process that a step has started may keep the pipe open.
LAST_WORDS_S = 0.5


@dataclass(slots=True)
class WorkerChild:
    """Times are on the monotonic clock, which all processes of a host share."""

    name: str
    process: asyncio.subprocess.Process
    output: asyncio.Task[None]
    started_at: float
    beaten_at: float
    is_leaving: bool = False

    @classmethod
    async def start(
        cls, settings: Settings, name: str, admits: Admits, tell: Callable[[str], None], now: float
    ) -> WorkerChild:
        command = [
            sys.executable, "-P", "-m", "penstock.engine.worker_process",
            "--project", str(settings.root), "--worker", name, "--admits", admits,
        ]  # fmt: skip
        if settings.environment:
            command += ["--env", settings.environment]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        output = asyncio.create_task(_relay(process.stdout, settings.secrets, tell))
        return cls(name, process, output, started_at=now, beaten_at=now)

    @property
    def exit_code(self) -> int | None:
        return self.process.returncode

    @property
    def has_ended(self) -> bool:
        return self.process.returncode is not None

    def is_stopped(self) -> bool:
        """Whether it was stopped by a signal; where that can't be seen, it is taken to be running."""
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in ("T", "t")

    def beat(self, asked_at: float) -> None:
        """Its lease was renewed by a call that was made then: it may count from there."""
        self.beaten_at = asked_at
        self._send(f"beat {asked_at!r}")

    def drain(self) -> None:
        self.is_leaving = True
        self._send("drain")

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()

    async def end(self) -> None:
        """Whatever it is doing, it is over now."""
        self.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), KILL_AFTER_S)
        self.output.cancel()

    async def last_words(self) -> None:
        """Let what it said last be told before anything is said about it."""
        await asyncio.wait({self.output}, timeout=LAST_WORDS_S)
        self.output.cancel()

    def _send(self, line: str) -> None:
        if self.process.stdin is None or self.has_ended:
            return
        with suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(line.encode() + b"\n")


async def _relay(
    output: asyncio.StreamReader | None, secrets: frozenset[str], tell: Callable[[str], None]
) -> None:
    """What a worker or a step prints, line by line; a line without end is cut, but not through a secret."""
    masker, rest = masker_for(secrets), ""
    while output is not None and (line := await _line(output)):
        text = rest + line.decode("utf-8", "replace")
        if text.endswith("\n"):
            shown, rest = masker.mask(text.rstrip("\n")), ""
        else:
            shown, rest = masker.mask_piece(text)
        tell(shown)
    if rest:
        tell(masker.mask(rest))


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as rest:
        return rest.partial
    except asyncio.LimitOverrunError as overrun:
        return await stream.read(overrun.consumed)


def how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"
    return f"ended with code {code}"
