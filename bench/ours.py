"""Penstock's side: real projects, most of them worked off by the shipped command in a terminal.

Seconds are those from the first claim to the end of the command, so that only its start-up is left out.
Where jobs are enqueued from outside, or a connector is measured, they are the runs' own.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import commands, product, projects, text_files
from bench import records as loads
from bench.peers.bare_sqlite import rows_per_job
from bench.projects import GUARDED, RATE, SQLITE, nothing, project_in, span, up, write
from penstock import Project
from penstock.app.views.progress import RunReport
from penstock.engine.worker.loop import Worker
from penstock.engine.worker.process import SWITCH_INTERVAL_S, build_worker
from penstock.store.store import Store

GIVE_UP_S = 60.0
# Between the end of one run and the start of the next, from and to.
PAUSE_S = (0.03, 0.08)


def noop(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Enqueue all jobs, then let a worker process claim, perform and settle them."""
    with project_in(folder, nothing(size["sources"])) as project:
        runs = [project.run(key) for key in project.settings.sources]
        began = time.perf_counter()
        projects.enqueue(project.connection, runs, size["jobs"], size["chunk"])
        enqueue_seconds = time.perf_counter() - began
        project.runs.finish(runs, tell=print)
        drain_seconds, done = span(project, runs)
        rows = rows_per_job(project.connection._db.connection, size["jobs"])
    return {
        "seconds": enqueue_seconds + drain_seconds,
        "done": done - len(runs),
        "enqueue_seconds": enqueue_seconds,
        "drain_seconds": drain_seconds,
        "rows": rows,
    }


def pages(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`penstock run` of all sources in a terminal: each lists its pages, and each page does nothing."""
    params = {"pages": size["jobs"] // size["sources"]}
    source = {"pipeline": "bench.pipelines:empty_pages", "params": params}
    worker = {"count": size["workers"]} if "workers" in size else {}
    store = size.get("store", SQLITE)
    write(folder, projects.alike(size["sources"], source), worker, store)
    worked = commands.work(folder, "run", "--all")
    done = worked.total("pages_done")
    if done != size["jobs"]:
        raise ValueError(f"{done} of {size['jobs']} pages were done")
    found = {"seconds": worked.seconds, "done": done, "start_up_s": worked.start_up_s}
    if store == SQLITE:
        with Project.load(folder) as project:
            found["rows"] = rows_per_job(project.connection._db.connection, size["jobs"])
    return found


def enqueue(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Enqueue all jobs, each with a key that makes it idempotent, and nothing more."""
    with project_in(folder, nothing(size["sources"])) as project:
        runs = [project.run(key) for key in project.settings.sources]
        began = time.perf_counter()
        projects.enqueue(project.connection, runs, size["jobs"], size["chunk"])
        seconds = time.perf_counter() - began
        rows = rows_per_job(project.connection._db.connection, size["jobs"])
    return {"seconds": seconds, "done": size["jobs"], "rows": rows}


def site(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Crawl the site: every page and every product is a durable job, every payload a snapshot."""
    worked = crawled(size, folder)
    return {"seconds": worked.seconds, "done": worked.total("pages_done")}


def crawled(size: dict[str, Any], folder: Path) -> commands.Worked:
    """`penstock run` of all hosts of the site, each a source of its own."""
    sitemap = size.get("sitemap", "/sitemap.xml")
    sources = {
        f"site-{number}.test": projects.crawl(origin + sitemap, size["concurrency"])
        for number, origin in enumerate(size["origins"])
    }
    write(folder, sources, {})
    worked = commands.work(folder, "run", "--all")
    with Project.load(folder) as project:
        product.check(set(_records(project.connection, "product")), size["pages"])
    return worked


def api(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read all items of an API: every page is a durable job and a snapshot, every item a record."""
    source = {
        "connector": "api",
        "url": size["origin"] + "/items",
        "key": "sku",
        "limits": {"concurrency": size["concurrency"], "rate": RATE, "adaptive": True},
        "fetch": {"allow_private": True},
        **GUARDED,
    }
    with project_in(folder, {"items.test": source}) as project:
        report = _run(project, "items.test")
        saved = _records(project.connection, "items.test")
        loads.check({key: data["data"]["price"] for key, data in saved.items()}, size["items"])
    return {"seconds": report.seconds, "done": size["items"]}


def files(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read a folder: every file is a durable job, its bytes a snapshot, its document a record."""
    text_files.write(folder / "texts", size["files"], size["file_bytes"])
    source = {"connector": "files", "folder": "./texts", **GUARDED}
    with project_in(folder, {"texts": source}) as project:
        report = _run(project, "texts")
        saved = _each_record(project.connection, "texts")
        sizes = {key.rpartition("/")[2]: len(data["text"]) for key, data in saved}
        text_files.check(sizes, size["files"], size["file_bytes"])
    return {"seconds": report.seconds, "done": size["files"]}


def imap(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read a mailbox: every message is a durable job, its bytes a snapshot, its document a record."""
    source = {
        "connector": "imap",
        "host": "127.0.0.1",
        "port": size["port"],
        "tls": "none",
        "user": size["user"],
        "password": size["password"],
        "fetch": {"allow_private": True},
    }
    with project_in(folder, {"mail": source}) as project:
        report = _run(project, "mail")
        done = len(_records(project.connection, "mail"))
    return {"seconds": report.seconds, "done": done, "messages": done}


def headless(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Open all pages in a browser whose requests pass all gates: each is a job, a snapshot and a record."""
    source = {
        "connector": "headless",
        "sitemap": size["origin"] + "/sitemap.xml",
        "wait": "load",
        "pages_per_browser": 1000,
        "limits": {"concurrency": size["concurrency"], "rate": RATE},
        "fetch": {"allow_private": True},
        **GUARDED,
    }
    with project_in(folder, {"pages.test": source}) as project:
        report = _run(project, "pages.test")
        saved = len(_records(project.connection, "pages.test"))
        if saved != size["pages"]:
            raise RuntimeError(f"{saved} of {size['pages']} pages were saved")
    return {"seconds": report.seconds, "done": saved}


def records(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Load every other record, uncounted, then save all of them against the clock."""
    sources = {
        f"{load}.test": {
            "pipeline": "bench.pipelines:load",
            "params": {
                "load": load,
                "records": size["records"],
                "more_fields": size.get("more_fields", 0),
            },
        }
        for load in ("first", "second")
    }
    write(folder, sources, {})
    commands.work(folder, "run", "first.test")
    worked = commands.work(folder, "run", "second.test")
    with Project.load(folder) as project:
        prices, fields = {}, set()
        for key, data in _each_record(project.connection, "product"):
            prices[key] = data["price"]
            fields.add(len(data))
        loads.check(prices, size["records"])
    if len(fields) != 1 or fields.pop() < size.get("more_fields", 0):
        raise ValueError("records were saved without all of their fields")
    return {"seconds": worked.seconds, "done": worked.total("saved")}


def latency(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Start runs one by one from this process while `penstock up` waits in others."""
    sources = {"clock.test": {"pipeline": "bench.pipelines:clock"}}
    store = size.get("store", SQLITE)
    with project_in(folder, sources, store) as project, up(folder):
        if not size.get("notifies", True):
            _say_nothing(project)
        pause_s = size.get("pause_s", PAUSE_S)
        _started_after(project, pause_s)  # until the worker is there
        waits_ms = [_started_after(project, pause_s) * 1000 for _ in range(size["jobs"])]
    return projects.percentiles(waits_ms)


def claims(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Time every turn of a worker that takes a few jobs at a time from a long queue.

    A few, so that the shortest queue is still nearly as long at the end. Memory is the worker's
    peak after as many turns again with the slots it has by default.
    """
    sources, store = nothing(size["sources"]), size.get("store", SQLITE)
    write(folder, sources, {"slots": size["slots"]}, store)
    # In a process of its own: the memory that is measured below is the worker's alone.
    filling = [sys.executable, "-m", "bench.ours", json.dumps(size), str(folder)]
    subprocess.run(filling, check=True)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    turns_ms = _turns_ms(folder, size["turns"])
    write(folder, sources, {}, store)
    # Few enough that the queue outlasts them: a worker that has nothing to claim waits.
    _turns_ms(folder, min(size["turns"], size["backlog"] // 5000))
    return {**projects.percentiles(turns_ms), "rss_mb": _peak_rss_mb()}


def outlook(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Ask again and again how all sources stand: each has jobs queued, and a worker has 16 slots."""
    store = size.get("store", SQLITE)
    with project_in(folder, nothing(size["sources"]), store) as project:
        runs = [project.run(key) for key in project.settings.sources]
        projects.enqueue(project.connection, runs, size["jobs"], size["jobs"])
        project.connection.workers.register("bench", "here", 1, "bench", 16)
        project.outlook()
        looks_ms = []
        for _ in range(size["looks"]):
            began = time.perf_counter()
            found = project.outlook()
            looks_ms.append((time.perf_counter() - began) * 1000)
    if len(found) != size["sources"]:
        raise ValueError(f"{len(found)} of {size['sources']} sources were told")
    return projects.percentiles(looks_ms)


def _turns_ms(folder: Path, turns: int) -> list[float]:
    with TimedProject.load(folder) as project:
        asyncio.run(_work_for(project, turns))
        return [seconds * 1000 for seconds in project.turns]


class TimedProject(Project):
    """A project whose worker's store notes how long each turn that claims takes, then drains it."""

    turns: list[float]
    enough: int
    worker: Worker | None = None

    def open_store(self) -> Store:
        store = super().open_store()
        turn = store.turn
        self.turns = []

        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            answer = turn(*arguments)
            if answer.claimed:
                self.turns.append(time.perf_counter() - began)
            if self.worker is not None and len(self.turns) >= self.enough:
                self.worker.drain()
                self.worker = None
            return answer

        store.turn = timed  # type: ignore[method-assign]
        return store


async def _work_for(project: TimedProject, turns: int) -> None:
    name = "bench"
    project.enough = turns
    project.connection.workers.register(name, "here", 1, "bench")
    worker, close = build_worker(project, name, print)
    project.worker = worker
    await worker.work()
    await close()


def fill(size: dict[str, Any], folder: Path) -> None:
    """Queue the backlog."""
    with Project.load(folder) as project:
        runs = [project.run(key) for key in project.settings.sources]
        projects.enqueue(project.connection, runs, size["backlog"], size["chunk"])


# Work.


def _run(project: Project, source: str) -> RunReport:
    [report] = project.runs.finish([project.run(source)], tell=print)
    if report.state != "completed":
        raise RuntimeError(f"the run ended as {report.state}: {report.counts}")
    return report


def _records(store: Store, collection: str) -> dict[str, Any]:
    return dict(_each_record(store, collection))


def _each_record(store: Store, collection: str) -> Iterator[tuple[str, Any]]:
    after = ""
    while page := store.records.of(collection, after):
        yield from ((row.key, row.data) for row in page)
        after = page[-1].key


def _say_nothing(project: Project) -> None:
    """Start runs without giving anybody a hint of it, as if each notification were lost."""
    project.connection._db.hints.give = lambda connection: None


def _started_after(project: Project, pause_s: tuple[float, float]) -> float:
    # At a moment that has nothing to do with the worker's own rhythm.
    time.sleep(random.uniform(*pause_s))
    began = time.monotonic()
    run_id = project.run("clock.test")
    while not project.require_run(run_id).is_ended:
        if time.monotonic() - began > GIVE_UP_S:
            raise TimeoutError("nobody worked off the run")
        time.sleep(0.005)
    [version] = project.connection.records.versions("start", str(run_id))
    return float(version.data["started_at"]) - began


# Figures.


def _peak_rss_mb() -> float:
    status = Path("/proc/self/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    fill(json.loads(sys.argv[1]), Path(sys.argv[2]))
