"""SIGSTOP beyond the lease: whoever wakes changes nothing."""

from __future__ import annotations

import signal
import subprocess

from penstock.jobs.job import JobState
from penstock.prove.pipelines import PAGES, sitemap_source
from penstock.prove.processes import is_gone, kill, pause, until
from penstock.prove.scenes.stage import Scene, Stage, look_at
from penstock.prove.verdict import Verdict
from penstock.prove.workplace import Workplace
from penstock.store.workers import LEASE_S

NAME, TITLE = "stops", "SIGSTOP beyond the lease, then SIGCONT"
PAGE_MS = 400
BEYOND_S = 3.0
WITHIN_S = LEASE_S + 30.0
ENDING_S = 120.0


def play(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE)
    _stop_worker(stage, verdict)
    if stage.left_s > 2 * LEASE_S:
        _stop_host(stage, verdict)
    return verdict


def _source(stage: Stage) -> tuple[dict[str, object], int]:
    concurrency = stage.scratch.terms().concurrency
    pages = 12 * concurrency
    stage.site.forget()
    limits = {"concurrency": concurrency}
    return sitemap_source(stage.site.url, pages, PAGE_MS, limits=limits), pages


def _stop_worker(stage: Stage, verdict: Verdict) -> None:
    """One worker is stopped; its supervisor replaces it; it wakes when all is done."""
    source, pages = _source(stage)
    with stage.scratch.place({"shop": source}, PAGES) as place:
        run_id = place.begin("shop")
        process = place.start("up")
        stopped = _busy_worker(place, run_id, process)
        stage.tell("a worker is stopped")
        at = place.store.now()
        kill(stopped, signal.SIGSTOP)
        until(
            lambda: place.events("worker.reaped"), "the stopped worker is reaped", within_s=WITHIN_S
        )
        verdict.recoveries_s.append(place.events("worker.reaped")[0].at - at)
        until(lambda: place.run(run_id).is_ended, "the run has ended", within_s=ENDING_S)
        _wake(place, [stopped], verdict, "worker")
        until(lambda: is_gone(stopped), "the woken worker has ended", within_s=WITHIN_S)
        _end(place, process, run_id, pages, stage, verdict)
    verdict.faults += 1
    verdict.text = (
        f"a worker was stopped until it was reaped ({verdict.recoveries_s[-1]:.1f} s), then woken"
    )


def _stop_host(stage: Stage, verdict: Verdict) -> None:
    """Supervisor and worker are stopped together. On Postgres another takes over; on SQLite nobody can."""
    source, pages = _source(stage)
    with stage.scratch.place({"shop": source}, PAGES) as place:
        run_id = place.begin("shop")
        process = place.start("up")
        worker = _busy_worker(place, run_id, process)
        stage.tell("a whole host is stopped")
        other = place.start("up") if stage.scratch.is_shared else None
        for pid in (process.pid, *place.worker_pids(process)):
            kill(pid, signal.SIGSTOP)
        if other is not None:
            until(lambda: place.run(run_id).is_ended, "the run has ended", within_s=ENDING_S)
            _wake(place, [process.pid, worker], verdict, "host")
            other.terminate()
            place.wait(other, ENDING_S)
        else:
            pause(LEASE_S + BEYOND_S)
            for pid in (process.pid, worker):
                kill(pid, signal.SIGCONT)
            until(lambda: place.run(run_id).is_ended, "the run has ended", within_s=ENDING_S)
        _end(place, process, run_id, pages, stage, verdict)
    verdict.faults += 1
    verdict.text += "; a whole host was stopped beyond its lease, then woken"


def _busy_worker(place: Workplace, run_id: int, process: subprocess.Popen[str]) -> int:
    """A worker that has attempts under way."""
    place.wait_for_pages(run_id, 1, process)
    until(lambda: place.jobs(JobState.RUNNING), "attempts are under way", process=process)
    return int(until(lambda: place.worker_pid(process), "a worker is there", process=process))


def _wake(place: Workplace, pids: list[int], verdict: Verdict, who: str) -> None:
    before = _state(place)
    for pid in pids:
        kill(pid, signal.SIGCONT)
    pause(BEYOND_S)
    if _state(place) != before:
        verdict.wrong(f"the {who} that woke changed jobs or records that were not its own any more")


def _state(place: Workplace) -> tuple[object, ...]:
    return place.jobs(), place.store.records.of("page", limit=1_000_000)


def _end(
    place: Workplace,
    process: subprocess.Popen[str],
    run_id: int,
    pages: int,
    stage: Stage,
    verdict: Verdict,
) -> None:
    process.terminate()
    place.wait(process, ENDING_S)
    expected = {f"/page/{n}" for n in range(pages)}
    look_at(place, run_id, expected, verdict, requests=stage.site.counts().total())


SCENE = Scene(NAME, TITLE, play, least_s=LEASE_S + 20.0, is_repeated=False)
