"""A worker process as its supervisor sees it: started, talked to, listened to, ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.engine.worker.deadlines import SharedDeadlines
from penstock.engine.worker.exits import EXIT_STUCK, TRUST_S
from penstock.engine.worker.watchdog import SUPERVISORS_PATIENCE_S, StuckLoop
from penstock.gates.capacity import DrainScope
from penstock.settings import Settings
from penstock.settings.cells import VARIABLE
from penstock.settings.secrets import masker_for
from penstock.store.rows import Admits

KILL_AFTER_S = 5.0
# What a worker said last is waited for this long: a process that a step has started may keep the pipe open.
LAST_WORDS_S = 0.5
MOST_NAMED = 5


@dataclass(slots=True)
class WorkerChild:
    """Times are on the monotonic clock, which all processes of a host share."""

    name: str
    process: asyncio.subprocess.Process
    output: asyncio.Task[None]
    control: int
    deadlines: SharedDeadlines
    started_at: float
    beaten_at: float
    is_leaving: bool = False
    # It was left without a beat for longer than it trusts itself, so it has stopped, or is about to.
    was_forgotten: bool = False
    # Why we ended it, if we did.
    ended_why: str = ""
    _loop: StuckLoop = field(default_factory=lambda: StuckLoop(SUPERVISORS_PATIENCE_S))

    @classmethod
    async def start(
        cls,
        settings: Settings,
        name: str,
        admits: Admits,
        tell: Callable[[str], None],
        now: float,
        scope: DrainScope | None = None,
        release: str | None = None,
    ) -> WorkerChild:
        """With a `release`, it works with the files of that instead of the project's own."""
        theirs, control = os.pipe()
        os.set_blocking(control, False)
        deadlines = SharedDeadlines.create(settings.worker.slots, now)
        command = [
            sys.executable, "-P", "-m", "penstock.engine.worker",
            "--project", str(settings.root), "--worker", name, "--admits", admits,
            "--control", str(theirs), "--deadlines", str(deadlines.descriptor),
        ]  # fmt: skip
        if settings.environment:
            command += ["--env", settings.environment]
        if release is not None:
            command += ["--release", release]
        if scope is not None:
            command += ["--scope", scope.text]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                # A step that reads gets nothing, instead of what is meant for the worker.
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(theirs, deadlines.descriptor),
                start_new_session=True,
                env={**os.environ, **_cell(settings), "PYTHONUNBUFFERED": "1"},
            )
        finally:
            os.close(theirs)
        output = asyncio.create_task(_relay(process.stdout, settings.secrets, tell))
        return cls(name, process, output, control, deadlines, started_at=now, beaten_at=now)

    @property
    def exit_code(self) -> int | None:
        return self.process.returncode

    @property
    def has_begun(self) -> bool:
        """Whether it has loaded its project and works."""
        return self.control >= 0 and self.deadlines.pulsed_at > self.started_at

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
        self.was_forgotten = self.was_forgotten or asked_at - self.beaten_at >= TRUST_S
        self.beaten_at = asked_at
        self._send(f"beat {asked_at!r}")

    def drain(self) -> None:
        self.is_leaving = True
        self._send("drain")

    def has_heard_nothing(self, now: float) -> bool:
        """Whether it was left without a beat for so long that it had to stop by itself."""
        return self.was_forgotten or now - self.beaten_at >= TRUST_S

    def stuck(self, now: float) -> str:
        """Why it must be ended, if its loop and its watchdog have stood still past an attempt's time."""
        if self.control < 0:
            return ""
        if self.is_stopped():
            self._loop.excuse(now)
            return ""
        deadlines = self.deadlines
        if not self._loop.is_stuck(now, deadlines.pulsed_at, deadlines.earliest):
            return ""
        jobs = ", ".join(map(str, deadlines.overdue(now)[:MOST_NAMED]))
        return (
            f"did not respond past the timeout of a step that blocks it (job {jobs}) and was ended"
        )

    def kill(self, why: str = "") -> None:
        self.ended_why = self.ended_why or why
        with suppress(ProcessLookupError):
            self.process.kill()

    async def end(self) -> None:
        """Whatever it is doing, it is over now."""
        self.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), KILL_AFTER_S)
        self.output.cancel()
        self.close()

    async def last_words(self) -> None:
        """Let what it said last be told before anything is said about it."""
        await asyncio.wait({self.output}, timeout=LAST_WORDS_S)
        self.output.cancel()
        self.close()

    def _send(self, line: str) -> None:
        # A pipe that is full has a worker behind it that reads nothing: it is over in any case.
        if not self.has_ended:
            with suppress(BrokenPipeError, BlockingIOError):
                os.write(self.control, line.encode() + b"\n")

    def close(self) -> None:
        """Give back what was kept to talk to it."""
        if self.control >= 0:
            os.close(self.control)
            self.control = -1
            self.deadlines.close()


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
    if code == EXIT_STUCK:
        return "was ended because a step blocked its event loop past its timeout"
    return f"ended with code {code}"


def _cell(settings: Settings) -> dict[str, str]:
    """A worker is of the same cell as who starts it."""
    return {} if settings.cell is None else {VARIABLE: settings.cell.name}
