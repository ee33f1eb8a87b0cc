"""A job that kills its worker ends in quarantine, and takes nobody with it."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.jobs.job import JobState
from tests.journeys.rig import Rig

POISON = """
import ctypes
import os
import signal

from penstock import Pipeline

pages = Pipeline("pages")
WAYS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
    "exit as if drained": lambda: os._exit(0),
    "exit as if misconfigured": lambda: os._exit(2),
}


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number, "way": ctx.params["poison"].get(str(number))}


@pages.step(after="discover", unit="page", key="number")
async def touch(page, ctx):
    ISOLATED
    if page["way"]:
        WAYS[page["way"]]()
    ctx.save("page", key=f"{ctx.source.key} {page['number']}", data=page)
"""
IN_WORKER = POISON.replace("    ISOLATED\n", "")
IN_CHILD = IN_WORKER.replace('key="number")\nasync def', 'key="number", isolation="process")\ndef')


def source(pages: int, poison: dict[str, str]) -> dict[str, object]:
    return {"pipeline": "steps:pages", "params": {"pages": pages, "poison": poison}}


def test_poison_is_quarantined_after_three_deaths_and_everything_else_finishes(
    tmp_path: Path,
) -> None:
    poison = {
        "3": "kill",
        "9": "segfault",
        "15": "exit as if drained",
        "21": "exit as if misconfigured",
    }
    with Rig(tmp_path, {"bad": source(30, poison), "good": source(200, {})}, IN_WORKER) as rig:
        done = rig.penstock("run", "--all", "--json", within_s=150)
        assert done.returncode == 3, done.stderr
        states = {r["source"]: r["state"] for r in map(json.loads, done.stdout.splitlines())}
        assert states == {"bad": "partial", "good": "completed"}
        quarantined = rig.jobs(JobState.QUARANTINED)
        assert {job.key for job in quarantined} == set(poison)
        assert [(job.kind, job.deaths, job.attempt) for job in quarantined] == [
            ("poison", 3, 3)
        ] * 4
        innocent = {f"bad {number}" for number in range(30) if str(number) not in poison}
        rig.assert_records(innocent | {f"good {number}" for number in range(200)})
        rig.assert_sound()


def test_poison_in_a_process_of_its_own_is_an_ordinary_failure(tmp_path: Path) -> None:
    poison = {"1": "kill", "3": "segfault", "5": "exit as if drained"}
    with Rig(tmp_path, {"bad": source(8, poison)}, IN_CHILD) as rig:
        done = rig.penstock("run", "bad", "--json", within_s=100)
        assert done.returncode == 3, done.stderr
        quarantined = rig.jobs(JobState.QUARANTINED)
        assert {job.key for job in quarantined} == set(poison)
        # Nobody knows why a child dies: such failures are tried twice.
        assert {(job.kind, job.deaths, job.tries) for job in quarantined} == {("unknown", 0, 2)}
        assert len(rig.events("worker.started")) == 1
        assert rig.events("worker.reaped") == []
        rig.assert_records({f"bad {number}" for number in range(8) if str(number) not in poison})
        rig.assert_sound()
