"""Kills, power cuts and disk errors at single writes, by a file layer under SQLite and on virtual time."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from penstock.prove.processes import own_environment
from penstock.prove.scenes.stage import Scene, Stage
from penstock.prove.verdict import Verdict

NAME, TITLE = "writes", "kills, power cuts and disk errors at single writes"
SWEEPS = ("kill", "power", "fail")
# How long each of the three goes on, where nobody says how long there is.
USUAL_S = 6.0
# A slow machine gets the time for so many points of each, unless somebody says how long there is.
LEAST_POINTS = 10
PROGRAM = "penstock.testing.crash"


def play(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE, rounds=1)
    told = []
    for number, sweep in enumerate(SWEEPS):
        stage.tell(sweep)
        share_s = stage.left_s / (len(SWEEPS) - number)
        found = swept(stage, sweep, min(USUAL_S, share_s / 2), share_s)
        verdict.faults += found["points"]
        verdict.wrong(*found["violations"][:20])
        told.append(found["words"])
    verdict.wanted = LEAST_POINTS * len(SWEEPS)
    verdict.text = "; ".join(told) + "; injected under SQLite, on virtual time"
    return verdict


def swept(stage: Stage, sweep: str, seconds: float, longest: float) -> dict[str, Any]:
    """One sweep in a process of its own, in the scratch folder: what it did and what was wrong.

    It goes on for so many seconds, and longer, but not than `longest`, until it has the least points.
    """
    words = [
        sys.executable, "-m", PROGRAM, sweep, "--json",
        "--seconds", f"{max(1.0, seconds):.1f}", "--longest", f"{max(1.0, longest):.1f}",
        "--least", str(LEAST_POINTS),
        "--seed", str(stage.rng.randrange(1 << 32)),
        "--dir", str(stage.scratch.folder),
    ]  # fmt: skip
    done = subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        env=own_environment(),
        start_new_session=True,
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        end = (done.stderr or done.stdout).strip()[-400:]
        return {"words": sweep, "points": 0, "violations": [f"the sweep itself failed: {end}"]}
    return found


def _why_not(stage: Stage) -> str:
    if stage.scratch.is_shared:
        return "the file layer is under SQLite; a Postgres server writes by itself"
    return ""


SCENE = Scene(NAME, TITLE, play, _why_not, least_s=8.0)
