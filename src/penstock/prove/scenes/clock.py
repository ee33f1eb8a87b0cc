"""The time of day is set forward and back while a run goes on, for our own processes alone."""

from __future__ import annotations

import subprocess

from penstock.counting import count
from penstock.prove.pipelines import COUNTED_BY_RUN, PAGES, sitemap_source
from penstock.prove.processes import pause
from penstock.prove.scenes.stage import Scene, Stage, look_at
from penstock.prove.verdict import Verdict
from penstock.prove.workplace import Workplace
from penstock.prove.wrong_clock import WrongClock

NAME, TITLE = "clock", "the clock set forward and back, by a second to a day"
STEPS_S = (1.0, 60.0, 3600.0, 86_400.0)
PAGE_MS, PAGES_READ = 100, 150
BETWEEN_S = 0.3
LEAST_STEPS = 8
WITHIN_S = 180.0


def play(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE)
    stage.site.forget()
    concurrency = stage.scratch.terms().concurrency
    pages = PAGES_READ * max(1, concurrency // 4)
    source = sitemap_source(
        stage.site.url,
        pages,
        PAGE_MS,
        limits={"concurrency": concurrency},
        budget=COUNTED_BY_RUN,
    )
    with stage.scratch.place({"shop": source}, PAGES) as place:
        run_id = place.begin("shop")
        clock = WrongClock(place.folder, "host", 0.0)
        process = place.start("up", "--until-idle", **clock.environment)
        verdict.faults, verdict.wanted = _step(stage, place, clock, process), LEAST_STEPS
        if place.wait(process, WITHIN_S) != 0:
            verdict.wrong(f"`penstock up` failed: {place.output(process)[-500:]}")
        expected = {f"/page/{n}" for n in range(pages)}
        look_at(place, run_id, expected, verdict, requests=stage.site.counts().total())
        deaths = sum(job.deaths for job in place.jobs())
        if deaths:
            verdict.wrong(f"{count(deaths, 'attempt')} taken for dead")
        verdict.text = "a shifted clock of our own processes; that of the machine was left alone"
    return verdict


def _step(stage: Stage, place: Workplace, clock: WrongClock, process: subprocess.Popen[str]) -> int:
    """Set it again and again until the work is done; it is right at the end."""
    steps = 0
    while process.poll() is None:
        clock.set(stage.rng.choice(STEPS_S) * stage.rng.choice((-1, 1)))
        steps += 1
        pause(BETWEEN_S, process)
        if steps % 4 == 0:
            clock.set(0.0)
            pause(BETWEEN_S, process)
    clock.set(0.0)
    return steps


SCENE = Scene(NAME, TITLE, play)
