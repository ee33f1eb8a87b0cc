"""A full disk: waited out, with nothing lost and no try spent."""

from __future__ import annotations

from penstock.counting import count
from penstock.jobs.job import JobState
from penstock.prove.pipelines import GREEDY
from penstock.prove.processes import until
from penstock.prove.scenes.stage import Scene, Stage, look_at
from penstock.prove.scenes.writes import LEAST_POINTS, swept
from penstock.prove.small_disk import SMALL_MB, SmallDisk
from penstock.prove.verdict import Verdict

NAME, TITLE = "disk", "a full disk"
RECORDS, BYTES = 400, 40_000
WITHIN_S = 120.0
SAID = "the disk is full"
INJECTED_S = 6.0


def play(stage: Stage) -> Verdict:
    why_not = SmallDisk.why_not()
    if why_not:
        return _injected(stage, why_not)
    try:
        return _mounted(stage)
    except OSError as error:
        return _injected(stage, str(error))


def _mounted(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE, faults=1)
    concurrency = stage.scratch.terms().concurrency
    source = {
        "pipeline": "steps:pages",
        "limits": {"concurrency": concurrency},
        "params": {"pages": RECORDS, "bytes": BYTES},
    }
    with (
        SmallDisk(stage.scratch.folder / "small") as disk,
        stage.scratch.place({"shop": source}, GREEDY, disk.folder) as place,
    ):
        run_id = place.begin("shop")
        process = place.start("up", "--until-idle")
        until(lambda: SAID in place.output(process), "the disk is full", process=process)
        until(lambda: not place.jobs(JobState.RUNNING), "what ran has been written down or waits")
        if process.poll() is not None:
            verdict.wrong(f"`penstock up` gave up: {place.output(process)[-500:]}")
        disk.grow()
        if place.wait(process, WITHIN_S) != 0:
            verdict.wrong(f"`penstock up` failed: {place.output(process)[-500:]}")
        look_at(place, run_id, {str(number) for number in range(RECORDS)}, verdict, requests=0)
        spent = sum(1 for job in place.jobs() if job.tries or job.deaths)
        if spent:
            verdict.wrong(f"{count(spent, 'job')} paid for the full disk with a try")
        verdict.text = (
            f"a file system of {SMALL_MB} MB in memory, filled and then enlarged; "
            "the disk of the project was not filled"
        )
    return verdict


def _injected(stage: Stage, why_not: str) -> Verdict:
    found = swept(stage, "full", min(INJECTED_S, stage.left_s / 2), stage.left_s)
    verdict = Verdict(NAME, TITLE, rounds=1, faults=found["points"], wanted=LEAST_POINTS)
    verdict.wrong(*found["violations"][:20])
    verdict.text = f"no real full disk ({why_not}): injected under SQLite instead: {found['words']}"
    return verdict


def _why_not(stage: Stage) -> str:
    if stage.scratch.is_shared:
        return "the disk is that of the Postgres server, and is not filled from here"
    return ""


SCENE = Scene(NAME, TITLE, play, _why_not, least_s=15.0, is_repeated=False)
