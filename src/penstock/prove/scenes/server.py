"""A line to the Postgres server that breaks, freezes and is refused."""

from __future__ import annotations

import subprocess

from penstock.counting import count
from penstock.http.relay import Relay
from penstock.prove.pipelines import PAGES, sitemap_source
from penstock.prove.processes import pause
from penstock.prove.scenes.stage import Scene, Stage, look_at
from penstock.prove.verdict import Verdict

NAME, TITLE = "server", "a line to the Postgres server that is cut, freezes or is refused"
PAGE_MS, PAGES_READ = 100, 200
LONGEST_S = 2.0
LEAST_FAULTS = 3
WITHIN_S = 240.0


def play(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE)
    stage.site.forget()
    concurrency = stage.scratch.terms().concurrency
    pages = PAGES_READ * max(1, concurrency // 4)
    source = sitemap_source(stage.site.url, pages, PAGE_MS, limits={"concurrency": concurrency})
    host, port = stage.scratch.server()
    with (
        Relay(host, port) as relay,
        stage.scratch.place({"shop": source}, PAGES, through=relay.port) as place,
    ):
        run_id = place.begin("shop")
        process = place.start("up", "--until-idle")
        verdict.faults, verdict.wanted = _fail(stage, relay, process), LEAST_FAULTS
        if place.wait(process, WITHIN_S) != 0:
            verdict.wrong(f"`penstock up` failed: {place.output(process)[-500:]}")
        expected = {f"/page/{n}" for n in range(pages)}
        look_at(place, run_id, expected, verdict, requests=stage.site.counts().total())
        spent = sum(1 for job in place.jobs() if job.tries)
        if spent:
            verdict.wrong(f"{count(spent, 'job')} paid for the broken line with a try")
        verdict.text = f"a relay on loopback before the server; {relay.accepted} connections"
    return verdict


def _fail(stage: Stage, relay: Relay, process: subprocess.Popen[str]) -> int:
    """One fault after the other until the work is done; the line is whole at the end."""
    faults = 0
    try:
        while process.poll() is None:
            stage.rng.choice((relay.cut, relay.freeze, relay.refuse))()
            faults += 1
            pause(stage.rng.uniform(0.1, LONGEST_S), process)
            relay.heal()
            pause(stage.rng.uniform(0.5, LONGEST_S), process)
    finally:
        relay.heal()
    return faults


def _why_not(stage: Stage) -> str:
    if not stage.scratch.is_shared:
        return "SQLite has no server"
    if stage.scratch.server() == ("", 0):
        return "the server is reached by a socket file, or by more than one address"
    return ""


SCENE = Scene(NAME, TITLE, play, _why_not, least_s=30.0)
