"""Child processes: what happens in one stays in one, and none outlives its worker or its time."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.engine.worker.children import Children
from penstock.engine.worker.perform import Performer
from penstock.http.failures import FetchError, HostClosed
from penstock.jobs.effects import Note
from penstock.jobs.outcome import (
    AttemptLost,
    Cancelled,
    Failed,
    Outcome,
    Skipped,
    Succeeded,
    Throttled,
)
from penstock.pipeline.attempt import StepSource
from penstock.pipeline.graph import Graph
from penstock.pipeline.pipeline import Pipeline
from tests.unit.performing import Bench, ListedServices, until

MODULE = """
import ctypes, os, signal, subprocess, sys, threading
from penstock import Pipeline, Reject

shop = Pipeline("shop")

@shop.step(unit="run")
def begin():
    yield {}

@shop.step(after="begin", isolation="process")
async def busy(item, ctx):
    print("not a message")
    sys.stdout.flush()
    os.write(1, b"nor this")
    response = await ctx.fetch("https://acme.com/", headers={"a": "b"})
    ctx.save("page", key=await ctx.cursor(), data={"text": response.text})
    await ctx.commit()
    async for record in ctx.records("page"):
        ctx.note(record["key"])
    yield {"pid": os.getpid(), "depth": ctx.params["depth"]}

@shop.step(after="busy", unit="page", key="pid")
def onward(item):
    raise Reject("unwanted")

@shop.step(after="begin", isolation="process")
def plain(item, ctx):
    ctx.note(item)
    ctx.commit()
    raise Reject("unwanted")

@shop.step(after="begin", isolation="process")
def pay(item, ctx):
    ctx.spend(money=0.5)
    raise ValueError("broken")

@shop.step(after="begin", isolation="process")
def die(how):
    if how == "segfault":
        ctypes.string_at(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "fork":
        if os.fork() == 0:
            threading.Event().wait()
        os._exit(5)
    os._exit(3)

@shop.step(after="begin", isolation="process")
def hang(path):
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(path, "w") as file:
        file.write(f"{os.getpid()} {sleeper.pid}\\n")
    threading.Event().wait()

@shop.step(after="begin", isolation="process")
async def block(path):
    with open(path, "w") as file:
        file.write(f"{os.getpid()}\\n")
    threading.Event().wait()
"""

Use = Callable[[Bench], Coroutine[Any, Any, None]]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    (tmp_path / "childshop.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import childshop  # type: ignore[import-not-found]

    pipeline: Pipeline = childshop.shop
    yield pipeline.compile()
    del sys.modules["childshop"]


def with_children(
    graph: Graph,
    root: Path,
    use: Use,
    services: ListedServices | None = None,
    pipeline: str = "childshop:shop",
) -> None:
    async def main() -> None:
        children = Children(2, root)
        source = StepSource("acme.com", {"depth": 2}, pipeline=pipeline)
        try:
            await use(Bench(graph, services, children=children, source=source))
        finally:
            await children.close()

    asyncio.run(main())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie whose parent has not looked yet is as dead as it gets.
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


async def pids_in(path: Path, count: int) -> list[int]:
    def pids() -> list[int]:
        text = path.read_text() if path.exists() else ""
        return [int(word) for word in text.split()] if text.endswith("\n") else []

    await until(lambda: len(pids()) == count)
    return pids()


def test_a_child_has_all_that_a_step_may_ask_for(
    graph: Graph, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    services = ListedServices(
        pages={"https://acme.com/": b"hello"},
        collection=[{"key": "a"}, {"key": "b"}],
        checkpoints={"default": "c7"},
    )

    async def use(bench: Bench) -> None:
        first, second = await bench.start("busy", {}), await bench.start("busy", {})
        assert isinstance(first, Succeeded)
        assert isinstance(second, Succeeded)
        assert first.effects.notes == [Note("a"), Note("b")]
        items = [msgspec.json.decode(each.effects.children[0].item) for each in (first, second)]
        assert items[0]["depth"] == 2
        assert items[0]["pid"] != os.getpid()
        assert items[0] == items[1], "a child is kept for the next attempt"

    with_children(graph, tmp_path, use, services)
    save = services.flushed[0].saves[0]
    assert (save.key, save.data, save.snapshot) == ("c7", b'{"text":"hello"}', 1)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("nor this") == 2


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("segfault", "the child process was killed by SIGSEGV"),
        ("kill", "the child process was killed by SIGKILL (out of memory?)"),
        ("exit", "the child process exited with code 3"),
        ("fork", "the child process exited with code 5"),
    ],
)
def test_a_child_that_dies_is_a_failure_of_its_own_job(
    graph: Graph, tmp_path: Path, how: str, told: str
) -> None:
    async def use(bench: Bench) -> None:
        dying = bench.start("die", how, job_id=1)
        living = bench.start("plain", "fine", job_id=2)
        assert await dying == Failed(told, cause=told)
        assert await living == Skipped("unwanted", is_rejection=True, code="rejected")
        assert [effects.notes for effects in bench.services.flushed] == [[Note("fine")]]

    with_children(graph, tmp_path, use)


def test_the_workers_errors_reach_the_child_as_they_are(graph: Graph, tmp_path: Path) -> None:
    async def use(bench: Bench) -> None:
        bench.services.trouble = HostClosed("acme.com:443", 30.0, "", 429)
        assert await bench.start("busy", {}) == Throttled("acme.com:443", 30.0)
        bench.services.trouble = FetchError("404", "https://acme.com/", 404, True)
        gone = await bench.start("busy", {})
        assert isinstance(gone, Failed)
        assert (gone.error, gone.is_permanent) == ("FetchError: 404: https://acme.com/", True)
        bench.services.trouble = OSError("disk full")
        other = await bench.start("busy", {})
        assert isinstance(other, Failed)
        assert other.error == "RuntimeError: OSError: disk full"
        bench.services.trouble = AttemptLost("taken")
        assert await bench.start("plain", {}) == Cancelled("taken")

    with_children(graph, tmp_path, use)


def test_a_child_that_takes_too_long_is_killed_with_all_it_started(
    graph: Graph, tmp_path: Path
) -> None:
    async def use(bench: Bench) -> None:
        outcome = await bench.start("hang", str(tmp_path / "pids"), timeout_s=0.5)
        assert outcome == Failed(
            "timed out after 0.5 s", kind="transient", cause="timeout", is_timeout=True
        )
        child, sleeper = await pids_in(tmp_path / "pids", 2)
        await until(lambda: not is_alive(child) and not is_alive(sleeper))

    with_children(graph, tmp_path, use)


def test_a_cancelled_attempt_kills_its_child_even_if_its_loop_is_blocked(
    graph: Graph, tmp_path: Path
) -> None:
    async def use(bench: Bench) -> None:
        ended = bench.start("block", str(tmp_path / "pids"))
        [child] = await pids_in(tmp_path / "pids", 1)
        bench.performer.cancel(1, "drained")
        assert await ended == Cancelled("drained")
        await until(lambda: not is_alive(child))

    with_children(graph, tmp_path, use)


@pytest.mark.parametrize(
    ("pipeline", "told"),
    [
        ("childshop:shelf", "'childshop:shelf' does not name a pipeline"),
        ("", "'' does not name a pipeline"),
        ("nowhere:shop", "ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_a_pipeline_that_a_child_can_not_load_fails_the_job(
    graph: Graph, tmp_path: Path, pipeline: str, told: str
) -> None:
    async def use(bench: Bench) -> None:
        outcome = await bench.start("plain", {})
        assert isinstance(outcome, Failed)
        assert told in outcome.error

    with_children(graph, tmp_path, use, pipeline=pipeline)


def test_what_a_step_has_spent_is_reported_with_its_failure(graph: Graph, tmp_path: Path) -> None:
    async def use(bench: Bench) -> None:
        outcome = await bench.start("pay", {})
        assert isinstance(outcome, Failed)
        assert outcome.spent == {"money": 0.5}

    with_children(graph, tmp_path, use)


def test_a_child_ends_with_its_channel(graph: Graph, tmp_path: Path) -> None:
    """What a child sees of a worker that was killed is that the channel closes."""

    async def use(bench: Bench) -> None:
        ended = bench.start("hang", str(tmp_path / "pids"))
        child, sleeper = await pids_in(tmp_path / "pids", 2)
        hang_up()
        await until(lambda: not is_alive(child) and not is_alive(sleeper))
        assert isinstance(await ended, Failed)

    ours: list[socket.socket] = []
    pair = socket.socketpair

    def remembering_pair() -> tuple[socket.socket, socket.socket]:
        both = pair()
        ours.append(both[0])
        return both

    def hang_up() -> None:
        ours[-1].shutdown(socket.SHUT_WR)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socketpair", remembering_pair)
        with_children(graph, tmp_path, use)


def test_closing_the_pool_ends_what_is_still_performed(graph: Graph, tmp_path: Path) -> None:
    started: list[asyncio.Future[Outcome]] = []
    children: list[int] = []

    async def use(bench: Bench) -> None:
        started.append(bench.start("block", str(tmp_path / "pids")))
        children.extend(await pids_in(tmp_path / "pids", 1))

    with_children(graph, tmp_path, use)
    assert not is_alive(children[0])


def test_without_children_an_isolated_step_runs_in_place(graph: Graph) -> None:
    """So it is in a child itself, and under simulation."""

    async def perform() -> Outcome:
        bench = Bench(graph)
        assert isinstance(bench.performer, Performer)
        return await bench.start("plain", "here")

    outcome = asyncio.run(perform())
    assert isinstance(outcome, Failed), "inline, so ctx.commit can't wait"
    assert "make the step async" in outcome.error


def test_signals_are_named() -> None:
    from penstock.engine.worker.children import _how_it_ended

    assert _how_it_ended(-signal.SIGABRT) == "was killed by SIGABRT"
    assert _how_it_ended(-60) == "was killed by signal 60"
    assert _how_it_ended(None) == "closed its channel and went on"
