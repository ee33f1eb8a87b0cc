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
PROGRAM = "penstock.testing.crash"


def play(stage: Stage) -> Verdict:
    verdict = Verdict(NAME, TITLE, rounds=1)
    told = []
    for sweep in SWEEPS:
        stage.tell(sweep)
        found = swept(stage, sweep, min(USUAL_S, max(2.0, stage.left_s / 6)))
        verdict.faults += found["points"]
        verdict.wrong(*found["violations"][:20])
        told.append(found["words"])
    verdict.text = "; ".join(told) + "; injected under SQLite, on virtual time"
    return verdict


def swept(stage: Stage, sweep: str, seconds: float) -> dict[str, Any]:
    """One sweep in a process of its own, in the scratch folder: what it did and what was wrong."""
    words = [
        sys.executable, "-m", PROGRAM, sweep, "--json",
        "--seconds", f"{seconds:.1f}",
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
