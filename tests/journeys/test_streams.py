"""A stream that is killed again and again: every record once, and the offset where the records end."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from tests.journeys.rig import Rig, kill, until

STEPS = """
import asyncio

from penstock import Pipeline

line = Pipeline("line")


@line.step(unit="stream")
async def listen(ctx):
    latest = await ctx.cursor("line") or 0
    while latest < ctx.params["length"]:
        await asyncio.sleep(0.002)
        latest += 1
        ctx.save("word", key=latest, data={"n": latest})
        ctx.checkpoint(latest, "line")
        yield {"n": latest}


@line.step(after="listen", unit="candidate", key="n")
def double(word, ctx):
    ctx.save("double", key=word["n"], data={"n": 2 * word["n"]})
"""


def survived(folder: Path, length: int, kills: int, seed: int) -> None:
    """Work off a stream of so many words while its worker or its supervisor is killed so often."""
    rng = random.Random(seed)
    source = {"pipeline": "steps:line", "params": {"length": length}}
    with Rig(folder, {"line": source}, STEPS) as rig:
        done = rig.penstock("run", "line", "--kind", "stream", "--detach", "--json")
        assert done.returncode == 0, done.stderr
        run_id = json.loads(done.stdout)["run"]

        def has_come_to(goal: int) -> bool:
            return rig.run(run_id).inserted >= goal

        process = rig.start("up")
        for number in range(1, kills + 1):
            goal = number * length // (kills + 2) + rng.randrange(length // (4 * kills))
            until(
                partial(has_come_to, goal),
                f"{goal} records are in",
                process=process,
            )
            worker = rig.worker_pid(process)
            if rng.random() < 0.5 and worker is not None:
                kill(worker)
            else:
                process.kill()
                process.wait()
                process = rig.start("up")
        until(lambda: rig.run(run_id).is_ended, "the stream has ended", process=process)
        process.terminate()
        assert process.wait(timeout=120) == 0, rig.output(process)

        assert rig.run(run_id).state == "completed"
        everything = {str(number) for number in range(1, length + 1)}
        rig.assert_records(everything, "word")
        rig.assert_records(everything, "double")
        source_id = rig.store.sources.ensure(["line"])["line"]
        assert rig.store.checkpoints.cursors(source_id) == {"line": length}
        [stream] = rig.jobs(JobState.SUCCEEDED, stage="listen")
        assert stream.attempt > 1
        rig.assert_sound()


def test_stream_survives_kills_with_every_record_once(tmp_path: Path) -> None:
    survived(tmp_path, length=1500, kills=6, seed=4)


@pytest.mark.parametrize("words", [("pause", "1"), ("hold", "line")])
def test_paused_stream_stops_and_goes_on_from_its_cursor(
    tmp_path: Path, words: tuple[str, str]
) -> None:
    back = {"pause": "resume", "hold": "unhold"}[words[0]]
    source = {"pipeline": "steps:line", "params": {"length": 10**6}}
    with Rig(tmp_path, {"line": source}, STEPS) as rig:
        assert rig.penstock("run", "line", "--kind", "stream", "--detach").returncode == 0
        process = rig.start("up")

        def listening() -> bool:
            return bool(rig.jobs(JobState.RUNNING, stage="listen"))

        until(lambda: rig.run(1).inserted > 100, "records come in", process=process)
        assert rig.penstock(*words).returncode == 0
        until(lambda: not listening(), "the stream has stopped", process=process)
        [stopped] = rig.jobs(stage="listen")
        assert (stopped.state, stopped.tries) == (JobState.QUEUED, 0)
        source_id = rig.store.sources.ensure(["line"])["line"]
        cursor = rig.store.checkpoints.cursors(source_id)["line"]
        assert len(rig.store.records.of("word", limit=10**6)) == cursor, (
            "every record has its cursor"
        )

        assert rig.penstock(back, words[1]).returncode == 0
        until(
            lambda: rig.store.checkpoints.cursors(source_id)["line"] > cursor + 100,
            "the stream goes on",
            process=process,
        )
        process.terminate()
        assert process.wait(timeout=120) == 0, rig.output(process)
        known = {row.key for row in rig.store.records.of("word", limit=10**6)}
        assert known == {str(number) for number in range(1, len(known) + 1)}


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_stream_survives_a_hundred_kills(tmp_path: Path) -> None:
    survived(tmp_path, length=40_000, kills=100, seed=5)
