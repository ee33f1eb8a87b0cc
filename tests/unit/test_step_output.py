"""What a step prints and logs is kept with its attempt: masked, bounded, whole lines."""

from __future__ import annotations

import asyncio
import io
import logging
from typing import Any

from penstock.engine.worker.step_output import (
    LONGEST_LINE,
    MOST_LINES,
    MOST_OF_RUN,
    StepLog,
    StepOutput,
    StepStream,
    performing,
)
from penstock.engine.worker.threads import Threads
from penstock.jobs.job import Claimed
from penstock.testing import VirtualClock
from tests.unit.performing import Bench, begun


def a_job(number: int = 1) -> Claimed:
    return Claimed(number, 7, 3, "act", f"key-{number}", 1, 0, 0, 0, False, "null")


def texts(output: StepOutput) -> list[tuple[str, str]]:
    return [(line.level, line.text) for line in output.take()]


def test_pieces_of_a_line_are_kept_as_one_and_the_rest_when_the_attempt_ends() -> None:
    output = StepOutput(VirtualClock())
    job = a_job()
    for piece in ("hel", "lo\nwor", "ld"):
        output.write(job, "stdout", piece)
    assert texts(output) == [("stdout", "hello")]
    output.end(job)
    assert texts(output) == [("stdout", "world")]


def test_secrets_are_masked_before_a_line_is_cut() -> None:
    secret = "s3cret-token"
    output = StepOutput(VirtualClock(), lambda text: text.replace(secret, "***"))
    output.write(a_job(), "stdout", "x" * (LONGEST_LINE - 5) + secret + "\n")
    [(_, text)] = texts(output)
    assert "s3c" not in text
    assert len(text) == LONGEST_LINE - 2


def test_what_one_attempt_and_one_run_may_say_is_bounded_and_what_is_left_out_is_counted() -> None:
    output = StepOutput(VirtualClock())
    job = a_job()
    for number in range(MOST_LINES + 50):
        output.write(job, "stdout", f"{number}\n")
    output.end(job)
    said = texts(output)
    assert len(said) == MOST_LINES + 1
    assert said[-1] == ("penstock", "(50 lines left out)")
    kept = 0
    for number in range(2, 2 * MOST_OF_RUN // MOST_LINES):
        for _ in range(MOST_LINES):
            output.write(a_job(number), "stdout", "x\n")
        kept += sum(level == "stdout" for level, _ in texts(output))
    assert kept == MOST_OF_RUN - MOST_LINES


def test_prints_and_logging_of_steps_of_any_colour_are_told_apart() -> None:
    output, shown = StepOutput(VirtualClock()), io.StringIO()
    stream, handler = StepStream(shown, "stdout", output), StepLog(output, shown)
    logger = logging.getLogger("shop.steps")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def on_loop(item: Any) -> None:
        async def inner() -> None:
            stream.write(f"inner {item}\n")

        await asyncio.gather(inner(), inner())
        logger.info("logged %s", item)

    @pipeline.step(after="begin", unit="page")
    def in_thread(item: Any) -> None:
        stream.write(f"thread {item}\n")
        logger.warning("careful")

    async def perform() -> None:
        threads = Threads()
        bench = Bench(pipeline, threads=threads)
        await asyncio.gather(
            bench.start("on_loop", "a", job_id=1), bench.start("in_thread", "b", job_id=2)
        )
        assert performing.get() is None
        stream.write("nobody's\n")
        threads.close()

    asyncio.run(perform())
    logger.removeHandler(handler)
    kept = {(line.job_id, line.level, line.text) for line in output.take()}
    assert kept == {
        (1, "stdout", "inner a"),
        (1, "info", "shop.steps: logged a"),
        (2, "stdout", "thread b"),
        (2, "warning", "shop.steps: careful"),
    }
    assert sorted(shown.getvalue().splitlines()) == sorted(
        ["inner a", "inner a", "thread b", "careful", "nobody's"]
    )
