"""What a step says before it is killed and says again afterwards is written once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.jobs.run import RunState
from penstock.store.reject_rows import RejectFilter
from tests.journeys.rig import Rig

BATCHES = 12
STEPS = """
import os
import signal
from pathlib import Path

from penstock import Pipeline

DIED = Path(__file__).parent / "died"
batches = Pipeline("batches")
follow = Pipeline("follow")


@batches.step(unit="run")
async def load(ctx):
    for number in range(12):
        ctx.note(f"batch {number}")
        ctx.reject("no price", code="no_price")
        ctx.signal("batch.loaded", number=number)
        await ctx.commit()
        if number == 7 and not DIED.exists():
            DIED.touch()
            os.kill(os.getpid(), signal.SIGKILL)


@follow.step(unit="run")
def act(ctx):
    ctx.save("seen", key=ctx.run.signal.data["number"], data={})
"""


def test_signals_notes_and_rejects_of_a_killed_step_are_written_once(tmp_path: Path) -> None:
    follower = {
        "pipeline": "steps:follow",
        "schedule": {"signal": "batch.loaded", "overlap": "queue"},
    }
    sources: dict[str, dict[str, Any]] = {
        "batches.org": {"pipeline": "steps:batches"},
        "follow.org": follower,
    }
    with Rig(tmp_path, sources, STEPS) as rig:
        rig.enqueue("batches.org")
        done = rig.penstock("up", "--until-idle")
        assert done.returncode == 0, done.stderr

        assert rig.run(1).state is RunState.COMPLETED
        [load] = [job for job in rig.jobs() if job.run_id == 1]
        assert load.attempt == 2
        notes = [event.detail for event in rig.events("job.noted")]
        assert notes == [f"batch {number}" for number in range(BATCHES)]
        assert rig.store.rejects.count(RejectFilter()) == rig.run(1).rejected == BATCHES
        raised = [each for each in rig.store.signals.after() if each.name == "batch.loaded"]
        assert len(raised) == BATCHES
