"""Child processes for steps with `isolation="process"`: they may crash, hang or leak alone.

A child performs one attempt at a time and is killed, with all it has started, when that attempt
takes too long. It never touches the database: what it fetches, commits or reads goes through here.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from penstock.engine.worker.child_protocol import (
    Answer,
    Ask,
    Begin,
    Channel,
    Charge,
    End,
    Ready,
    Refusal,
    effects_from,
    outcome_from,
    pack,
    refusal_of,
)
from penstock.engine.worker.performance import Work
from penstock.engine.worker.step_output import StepOutput
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Failed, Outcome
from penstock.pipeline.attempt import Services
from penstock.pipeline.error_outcome import timed_out

START_S = 60.0
END_S = 2.0
REAP_S = 0.01
READ_BYTES = 65_536
# What programs need of the environment: where they find things, their language and zone, and Python's own.
NEEDED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM"),
    *("TMPDIR", "TEMP", "TMP", "PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_*"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "XDG_*", "OMP_*"),
)


class Children:
    """Up to `max_processes` children, started when there is work for them, kept for the next."""

    def __init__(
        self,
        max_processes: int,
        root: Path,
        output: StepOutput | None = None,
        pass_env: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._output = output
        self._environment = environment(os.environ, pass_env)
        self._free = asyncio.Semaphore(max(1, max_processes))
        self._living: set[_Child] = set()
        self._idle: list[_Child] = []
        self._reaping: set[asyncio.Task[None]] = set()

    async def perform(self, work: Work, services: Services) -> Outcome:
        """Perform in a child, within the work's time; a call that is cancelled kills the child.

        Time runs from when the child has loaded the pipeline, not while the work waits for a child.
        """
        async with self._free:
            child = self._take_idle() or _Child(self._root, self._environment, self._output)
            self._living.add(child)
            try:
                outcome = await child.perform(work, services)
            except BaseException:
                self._end(child)
                raise
            if child.is_sound:
                self._idle.append(child)
            else:
                self._end(child)
            return outcome

    async def close(self) -> None:
        """Kill every child, and wait until it is gone; an attempt in one of them has crashed."""
        for child in list(self._living):
            self._end(child)
        self._idle = []
        while self._reaping:
            await asyncio.wait(self._reaping)

    def _take_idle(self) -> _Child | None:
        while self._idle:
            child = self._idle.pop()
            if child.is_alive:
                return child
            self._end(child)
        return None

    def _end(self, child: _Child) -> None:
        if child not in self._living:
            return
        self._living.remove(child)
        child.kill()
        task = asyncio.get_running_loop().create_task(child.reap())
        self._reaping.add(task)
        task.add_done_callback(self._reaping.discard)


class _Child:
    """One child process and the conversation with it."""

    def __init__(
        self, root: Path, environment: Mapping[str, str], output: StepOutput | None
    ) -> None:
        self._socket, theirs = socket.socketpair()
        self._said = _ChildOutput(output) if output is not None else None
        with theirs:
            said = self._said.theirs if self._said is not None else 2
            self._process = _spawn(theirs.fileno(), root, environment, said)
        if self._said is not None:
            self._said.listen()
        self._channel: Channel | None = None
        self._helping: set[asyncio.Task[None]] = set()
        self.is_sound = True

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def perform(self, work: Work, services: Services) -> Outcome:
        if self._said is not None:
            self._said.job = work.job
        try:
            return await self._perform(work, services)
        finally:
            if self._said is not None:
                self._said.hear()
            for task in self._helping:
                task.cancel()

    async def _perform(self, work: Work, services: Services) -> Outcome:
        try:
            async with asyncio.timeout(START_S):
                ended = await self._begin(work)
        except TimeoutError:
            self.is_sound = False
            error = f"the pipeline took more than {START_S:g} s to load"
            return Failed(error, kind="transient", cause="timeout", is_timeout=True)
        if ended is not None:
            return ended
        try:
            async with asyncio.timeout(work.timeout_s) as limit:
                work.postpone = partial(_postpone, limit)
                return await self._converse(work.job, services)
        except TimeoutError:
            self.is_sound = False
            return timed_out(work.timeout_s)
        finally:
            work.postpone = None

    async def _begin(self, work: Work) -> Outcome | None:
        """Hand the work over; an outcome means that it could not even be begun."""
        charge = Charge(work.source.pipeline, work.stage.name, work.job, work.source, work.run)
        channel = await self._open()
        with suppress(ConnectionError):
            await channel.send(Begin(charge))
        match await channel.receive():
            case Ready():
                return None
            case End() as end:
                return outcome_from(end)
        return await self._crashed()

    async def _open(self) -> Channel:
        if self._channel is None:
            reader, writer = await asyncio.open_connection(sock=self._socket)
            self._channel = Channel(reader, writer)
        return self._channel

    async def _converse(self, job: Claimed, services: Services) -> Outcome:
        channel = await self._open()
        while True:
            match await channel.receive():
                case Ask() as ask:
                    self._help(_answer(channel, ask, job, services))
                case End() as end:
                    return outcome_from(end)
                case _:
                    return await self._crashed()

    def _help(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(call)
        self._helping.add(task)
        task.add_done_callback(self._helping.discard)

    async def _crashed(self) -> Failed:
        self.is_sound = False
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self.reap()
        error = f"the child process {_how_it_ended(self._process.poll())}"
        return Failed(error, cause=error)

    def kill(self) -> None:
        """End the child and everything it has started."""
        if self._channel is not None:
            self._channel.close()
        self._socket.close()
        if self._said is not None:
            self._said.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def reap(self) -> None:
        """Wait until the process is gone."""
        while self._process.poll() is None:
            await asyncio.sleep(REAP_S)


def _postpone(limit: asyncio.Timeout, by_s: float) -> None:
    ends_at = limit.when()
    if ends_at is not None and not limit.expired():
        limit.reschedule(ends_at + by_s)


class _ChildOutput:
    """What a child, and whatever it has started, prints: kept with the attempt that it performs."""

    def __init__(self, output: StepOutput) -> None:
        self._output = output
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)
        self._loop = asyncio.get_running_loop()
        self.job: Claimed | None = None

    def listen(self) -> None:
        os.close(self.theirs)
        self._loop.add_reader(self._ours, self.hear)

    def hear(self) -> None:
        if self._ours < 0:
            return
        try:
            data = os.read(self._ours, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self.close()
        elif self.job is not None:
            self._output.write(self.job, "output", data.decode("utf-8", "replace"))

    def close(self) -> None:
        if self._ours >= 0:
            self._loop.remove_reader(self._ours)
            os.close(self._ours)
            self._ours = -1


def environment(ours: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
    """What a child gets to see: what a program needs to run, and what `worker.pass_env` names.

    Not the worker's whole environment: that holds what penstock.yaml takes its secrets from.
    """
    patterns = (*NEEDED, *passed)
    return {
        name: value
        for name, value in ours.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def _spawn(
    descriptor: int, root: Path, environment: Mapping[str, str], said: int
) -> subprocess.Popen[bytes]:
    """A session of its own: Ctrl-C is for the supervisor, and the whole group is killed at once."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "penstock.engine.worker.child",
        str(descriptor),
        str(root),
    ]
    return subprocess.Popen(  # noqa: S603  our own interpreter and module
        command,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        pass_fds=(descriptor,),
        start_new_session=True,
        env=environment,
    )


async def _answer(channel: Channel, ask: Ask, job: Claimed, services: Services) -> None:
    answer: Answer | Refusal
    try:
        answer = Answer(ask.number, pack(await _serve(ask, job, services)))
    except Exception as error:
        answer = refusal_of(ask.number, error)
    with suppress(ConnectionError):
        await channel.send(answer)


async def _serve(ask: Ask, job: Claimed, services: Services) -> Any:
    match ask.service:
        case "fetch":
            url, options = msgspec.msgpack.decode(ask.body, type=tuple[str, dict[str, Any]])
            return await services.fetch(job, url, **options)
        case "flush":
            return await services.flush(job, effects_from(ask.body))
        case "records":
            collection, after_key, limit = msgspec.msgpack.decode(
                ask.body, type=tuple[str, str | None, int]
            )
            return await services.records(collection, after_key, limit)
        case "cursors":
            return await services.cursors(job)
    raise ValueError(f"a child asked for {ask.service!r}")


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "closed its channel and went on"
    if code >= 0:
        return f"exited with code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
