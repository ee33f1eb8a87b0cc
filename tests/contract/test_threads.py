"""Many threads use one project at once: each has its own connection, and closing the project closes all."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from tests.contract.scenes import Place, write_project

THREADS, EACH = 8, 5


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Project:
    sources: dict[str, Any] = {f"s{number}": {} for number in range(THREADS)}
    return Project.open(write_project(tmp_path, place, sources))


def test_many_threads_act_and_read_at_once_and_nothing_is_lost(project: Project) -> None:
    begin = threading.Barrier(THREADS)

    def act(number: int) -> list[int]:
        source = f"s{number}"
        begin.wait()
        runs = []
        for _ in range(EACH):
            runs.append(project.run(source, actor=source))
            assert project.pause(source, actor=source)
            assert project.require_run(runs[-1]).actor == source
            assert project.resume(source, actor=source)
        return runs

    with project, ThreadPoolExecutor(THREADS) as pool:
        found = [run for runs in pool.map(act, range(THREADS)) for run in runs]
        assert len(set(found)) == THREADS * EACH
        assert project.connection.overview().queued == THREADS * EACH


def test_each_thread_has_one_connection_and_close_closes_them_all(project: Project) -> None:
    held = threading.Barrier(THREADS)

    def connection(_: int) -> object:
        mine = project.connection
        held.wait()  # nobody ends before all have begun
        assert project.connection is mine
        return mine

    before = _open_sockets_and_files()
    with ThreadPoolExecutor(THREADS) as pool:
        assert len({id(each) for each in pool.map(connection, range(THREADS))}) == THREADS
        project.close()
        assert _open_sockets_and_files() == before
        [again] = pool.map(lambda _: project.connection.overview().queued, range(1))
        assert again == 0
    project.close()


def test_threads_that_have_ended_leave_no_connections_behind(project: Project) -> None:
    held = threading.Barrier(THREADS)

    def look(_: int) -> None:
        project.connection.now()
        held.wait()  # nobody ends before all have begun

    with project:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(look, range(THREADS)))
            assert len(project.connections) == THREADS
        project.connection.now()
        assert len(project.connections) == 1


def _open_sockets_and_files() -> int:
    return len(os.listdir("/proc/self/fd"))
