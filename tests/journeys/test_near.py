"""Looking more often around an announced moment, as an operator sees it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from tests.journeys.rig import Rig, until

STEPS = """
from penstock import Pipeline

launch = Pipeline("launch")


@launch.step(unit="run")
def look(ctx):
    ctx.announce(ctx.params["at"])
"""


def test_announced_moment_is_explained_and_its_ticks_come_often(tmp_path: Path) -> None:
    at = float(round(time.time() + 300))
    source = {
        "pipeline": "steps:launch",
        "params": {"at": at},
        "schedule": {"every": "1h", "near": {"window": "10m", "every": "1s"}},
    }
    with Rig(tmp_path, {"acme.com": source}, STEPS) as rig:
        process = rig.start("up")
        until(lambda: rig.database.exists() and rig.store.schedules.all(), "it is planned")
        assert rig.penstock("run", "acme.com", "--detach").returncode == 0
        # Nothing was due for an hour.
        until(lambda: len(rig.store.runs.newest()) >= 3, "what was announced is heard of")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0, rig.output(process)

        plain = rig.penstock("schedules", "explain", "acme.com").stdout
        assert "every hour, every second within 10 minutes of an announced moment" in plain
        assert "which is near" in plain
        told = json.loads(rig.penstock("schedules", "explain", "acme.com", "--json").stdout)
        [row] = told["schedules"]
        assert len(row["announced"]) == 1
        seconds = [each[-10:] for each in row["coming"]]
        assert len(set(seconds)) == len(seconds) == 5
        assert row["ticks"][0]["outcome"] == "fired"
