"""The shipped command in a terminal of its own, as a user starts it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from bench.sampler import forget
from penstock import Project
from penstock.app.views.runs import RunView


@dataclass(frozen=True)
class Worked:
    """A command that performed runs: what it took without and before its first claim, and the runs."""

    seconds: float
    start_up_s: float
    runs: list[RunView]

    def total(self, name: str) -> int:
        return sum(run.counts[name] for run in self.runs)


def work(folder: Path, *arguments: str) -> Worked:
    """Run `penstock …` to its end, counted from the first claim: only its start-up is left out."""
    forget()
    began = time.time()
    ended = run(folder, *arguments)
    with Project.load(folder) as project:
        runs = [each for each in project.runs.each() if each.created_at >= began]
    not_completed = [f"{each.source}: {each.state}" for each in runs if each.state != "completed"]
    if not_completed or not runs:
        raise RuntimeError(f"runs did not complete: {not_completed[:5] or 'there are none'}")
    claimed = min(each.started_at for each in runs if each.started_at is not None)
    return Worked(ended - claimed, claimed - began, runs)


def run(folder: Path, *arguments: str) -> float:
    """Run `penstock …` to its end, with everything it draws read as it comes; the moment of its end."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "penstock", *arguments, "--project", str(folder)]
    drawn = bytearray()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        reader = threading.Thread(target=_read, args=(ours, drawn))
        reader.start()
        process.wait()
        ended = time.time()
        reader.join()
    os.close(ours)
    if process.returncode:
        raise RuntimeError(f"penstock ended with {process.returncode}:\n{drawn.decode()[-2000:]}")
    return ended


def _read(terminal: int, drawn: bytearray) -> None:
    while True:
        try:
            drawn += os.read(terminal, 65_536)
        except OSError:  # Linux says so when the last process has closed the other end
            return
