"""A worker as a process of its own: `python -m penstock.engine.worker`.

It is started by a supervisor, which writes lines to a pipe that nobody else knows of: `beat` (the lease
was renewed, by a call that was made at this time of the monotonic clock), `drain`, and nothing more when
the supervisor is gone, in which case it stops at once. Its standard input is empty.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import os
import random
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from penstock.clock import Clock, SyncedClock
from penstock.engine.worker.builder import Resources, WorkerBuilder, source_configs
from penstock.engine.worker.calls import InOneThread, InThreads
from penstock.engine.worker.children import Children
from penstock.engine.worker.deadlines import Deadlines, SharedDeadlines
from penstock.engine.worker.exits import (
    EXIT_BROKEN,
    EXIT_BURIED,
    EXIT_DRAINED,
    EXIT_LOST,
    EXIT_RECYCLE,
    EXIT_UNFIT,
    TRUST_S,
)
from penstock.engine.worker.lifeline import Lifeline
from penstock.engine.worker.loop import Worker
from penstock.engine.worker.step_output import StepOutput, catch
from penstock.engine.worker.store_listener import StoreListener
from penstock.engine.worker.threads import Threads
from penstock.engine.worker.watchdog import PULSE_S, Watchdog
from penstock.errors import PenstockError, StoreCorrupt, StoreIoError, StoreUnreachable
from penstock.gates.capacity import DrainScope, scope_of
from penstock.http.browser.browsers import Browsers
from penstock.http.network import AiohttpNetwork
from penstock.project import Project
from penstock.project.released import open_released
from penstock.settings.secrets import masker_for
from penstock.snapshots import open_snapshots
from penstock.store.rows import Admits

if TYPE_CHECKING:
    from penstock.engine.tracing.worker_traces import WorkerTraces

# With the default of 5 ms the store's thread waits that long, several times a turn, for a busy loop.
SWITCH_INTERVAL_S = 0.0005
PR_SET_PDEATHSIG = 1
# Stored pages that are read again at once: from an object store each takes a while.
READING_THREADS = 8
# Attempts make many short-lived objects and hardly any cycles: by default a sixth of the loop's time
# went into looking for some. What is loaded by the time work begins is not looked at again.
GC_THRESHOLDS = (20_000, 20, 20)
# A worker, and how to close all that it was built with.
Built: TypeAlias = tuple[Worker, Callable[[], Awaitable[None]]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="penstock.engine.worker")
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--env")
    # The release that is performed, if it is not the project's own files.
    parser.add_argument("--release")
    parser.add_argument("--worker", required=True)
    parser.add_argument("--admits", choices=get_args(Admits), default="all")
    parser.add_argument("--scope", type=scope_of)
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--deadlines", type=int, required=True)
    args = parser.parse_args(arguments)
    _die_with_parent()
    for descriptor in (args.control, args.deadlines):
        os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        project = _opened(args.project, args.env, args.release)
        output = StepOutput(project.clock, masker_for(project.settings.secrets).mask)
        catch(output)
        for error in project.broken_sources().values():
            _tell(f"its jobs wait until it can be loaded: {error.message}")
        lifeline = Lifeline(args.control, project.clock, TRUST_S, _vanish)
        if not lifeline.wait_for_beat():
            return EXIT_BURIED
        lifeline.start()
        shared = SharedDeadlines(args.deadlines)
        build = partial(build_worker, project, args.worker, _tell, args.admits, args.scope)
        return asyncio.run(_work(build, project.clock, lifeline, shared, output))
    except StoreUnreachable:
        return EXIT_LOST  # the supervisor says so, and waits
    except (StoreCorrupt, StoreIoError) as error:
        _say_error(error)
        return EXIT_BROKEN
    except (
        PenstockError
    ) as error:  # the configuration as it is now, or a server that lets nobody in
        _say_error(error)
        return EXIT_UNFIT


def _opened(folder: Path, environment: str | None, release: str | None) -> Project:
    if release is None:
        project = Project.open(folder, environment)
    else:
        project = open_released(folder, environment, release)
    if project.settings.cell is not None:
        with closing(project.open_store()) as store:
            project.keep_to_cell(store)
    return project


async def _work(
    build: Callable[..., Built],
    clock: Clock,
    lifeline: Lifeline,
    shared: SharedDeadlines,
    output: StepOutput,
) -> int:
    gc.freeze()
    gc.enable()
    deadlines = Deadlines(shared)
    worker, close = build(deadlines=deadlines, output=output)
    lifeline.attach(_OnLoop(worker, asyncio.get_running_loop()))
    watchdog = Watchdog(clock, deadlines)
    pulsing = asyncio.create_task(_pulse(watchdog, shared, clock))
    watchdog.start()
    try:
        is_orderly = await worker.work()
        if not is_orderly:
            return EXIT_BURIED
        return EXIT_RECYCLE if worker.must_be_recycled else EXIT_DRAINED
    finally:
        watchdog.stop()
        pulsing.cancel()
        await close()


def build_worker(
    project: Project,
    name: str,
    tell: Callable[[str], None],
    admits: Admits = "all",
    scope: DrainScope | None = None,
    deadlines: Deadlines | None = None,
    output: StepOutput | None = None,
) -> Built:
    """A worker of this project with the real clock, network, threads and processes."""
    settings = project.settings
    calls, writing = InOneThread("store"), InOneThread("snapshots")
    reading = InThreads("reading", READING_THREADS)
    threads = Threads(settings.worker.threads)
    children = Children(settings.worker.processes, settings.root, output, settings.worker.pass_env)
    browsers = Browsers()
    resources = Resources(
        store=project.open_store(),
        index=project.open_store(),
        calls=calls,
        writing=writing,
        reading=reading,
        snapshots=open_snapshots(settings.snapshots, name),
        network=AiohttpNetwork(),
        clock=SyncedClock(project.clock),
        rng=random.Random(),
        threads=threads,
        children=children,
        browsers=browsers,
    )
    traces = _traces(project, name, tell)
    news = asyncio.Event()
    listening = StoreListener(resources.store, calls, news.set)
    builder = WorkerBuilder(
        name=name,
        project=project,
        sources=source_configs(project, project.loadable_sources()),
        resources=resources,
        tell=tell,
        admits=admits,
        scope=scope,
        deadlines=deadlines if deadlines is not None else Deadlines(),
        output=output,
        tracer=None if traces is None else traces.tracer,
        is_announced=True,
        news=news,
        has_changed=listening.has_changed,
    )
    worker = builder.build()

    async def close() -> None:
        listening.close()
        if traces is not None:
            await asyncio.to_thread(traces.stop)
        await builder.fetcher.close()
        await children.close()
        browsers.close()
        threads.close()
        builder.snapshot_writer.close()
        builder.limiter.stop()
        for thread in (calls, writing, reading):
            thread.close()
        resources.snapshots.close()
        resources.index.close()
        resources.store.close()

    return worker, close


def _traces(project: Project, name: str, tell: Callable[[str], None]) -> WorkerTraces | None:
    if project.settings.tracing.endpoint is None:
        return None
    from penstock.engine.tracing.worker_traces import WorkerTraces

    traces = WorkerTraces(project, name, tell)
    traces.start()
    return traces


async def _pulse(watchdog: Watchdog, shared: SharedDeadlines, clock: Clock) -> None:
    while True:
        watchdog.pulse()
        shared.pulse(clock.monotonic())
        await asyncio.sleep(PULSE_S)


def _say_error(error: PenstockError) -> None:
    _tell(f"{error.message}\n  {error.hint}".rstrip())


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _OnLoop:
    """A worker as the lifeline's thread may talk to it."""

    def __init__(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        self._worker = worker
        self._loop = loop

    def trust_until(self, monotonic: float) -> None:
        self._worker.trust_until(monotonic)

    def drain(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: it has drained already
            self._loop.call_soon_threadsafe(self._worker.drain)


def _vanish() -> None:
    """At once, with everything that runs in this process: our claim to any job is over."""
    os._exit(EXIT_BURIED)


def _die_with_parent() -> None:
    """On Linux, have the kernel end us with the supervisor; elsewhere the end of stdin does."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
