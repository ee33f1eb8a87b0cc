"""A worker that is registered no more was buried by others, unless it was asked to leave and has done so."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from penstock.engine.supervisor.shutdown import Shutdown
from penstock.engine.supervisor.store_trouble import StoreTrouble
from penstock.engine.supervisor.watch import Contact
from penstock.engine.supervisor.worker_child import WorkerChild
from penstock.engine.supervisor.worker_slots import BEAT_S, Slot, WorkerSlots
from penstock.engine.worker.calls import InOneThread
from penstock.engine.worker.deadlines import SharedDeadlines
from penstock.engine.worker.exits import EXIT_BURIED, TRUST_S
from penstock.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "penstock.yaml").write_text("project: p\nsources: {}\n")
    return Project.load(tmp_path)


async def waiting_child(name: str) -> WorkerChild:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import sys; sys.stdin.read()", stdin=asyncio.subprocess.PIPE
    )
    _, control = os.pipe()
    output = asyncio.create_task(asyncio.sleep(0))
    long_ago = asyncio.get_running_loop().time() - 2 * BEAT_S
    deadlines = SharedDeadlines.create(1, long_ago)
    return WorkerChild(
        name, process, output, control, deadlines, started_at=long_ago, beaten_at=long_ago
    )


def slots_with(
    project: Project, calls: InOneThread, told: list[str], child: WorkerChild
) -> WorkerSlots:
    shutdown, trouble = Shutdown(project.clock, 0.0), StoreTrouble(project.clock, told.append)
    slots = WorkerSlots(
        project, project.connection, calls, Contact(), shutdown, trouble, told.append
    )
    slots.slots = [Slot("sound", child)]
    return slots


@pytest.mark.parametrize("is_asked_to_leave", [False, True])
def test_only_who_was_not_asked_to_leave_is_called_buried(
    project: Project, is_asked_to_leave: bool
) -> None:
    told: list[str] = []

    async def beat() -> WorkerChild | None:
        child, calls = await waiting_child("signed-off"), InOneThread()
        workers = slots_with(project, calls, told, child)
        if is_asked_to_leave:
            child.drain()
        try:
            await workers.beat_all()
            return workers.slots[0].child
        finally:
            await child.end()
            calls.close()

    kept = asyncio.run(beat())
    assert (kept is not None) == is_asked_to_leave
    assert told == (
        [] if is_asked_to_leave else ["worker signed-off was reaped: 0 jobs to run again"]
    )


def test_jobs_are_not_blamed_for_the_silence_of_a_supervisor_that_was_stopped(
    project: Project,
) -> None:
    """It wakes, beats for a worker that has long stopped by itself, and only then hears of its end."""
    told: list[str] = []

    async def wake() -> None:
        child, calls = await waiting_child("left-alone"), InOneThread()
        project.connection.workers.register(child.name, "host", child.process.pid, "1")
        child.beaten_at -= TRUST_S
        workers = slots_with(project, calls, told, child)
        try:
            await workers.beat_all()
            child.process.kill()
            await child.process.wait()
            # As a worker ends that heard of no beat in time.
            child.process._transport._returncode = EXIT_BURIED  # type: ignore[attr-defined]
            await workers.take_back(child)
        finally:
            await child.end()
            calls.close()

    asyncio.run(wake())
    kinds = [event.kind for event in project.connection.journal.events(limit=100)]
    assert "worker.stopped" in kinds
    assert "worker.reaped" not in kinds
