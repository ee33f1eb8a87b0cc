"""The tour: what Penstock does when things change, fail, cost or are not understood, one command at a time.

Every step of it is a command that can be typed; nothing here reaches behind the command line.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.demo.site import Site

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop of the tour: what it is about, what happens on the site, and what is typed."""

    title: str
    text: str
    commands: tuple[tuple[str, ...], ...]
    before: Callable[[Site], None] = field(default=lambda site: None)


@dataclass(frozen=True, slots=True)
class Typed:
    """A command that was run, and what it answered."""

    words: tuple[str, ...]
    exit_code: int
    output: str


# Stands for the run that the command before it has started.
THAT_RUN = "{run}"
_RUN = re.compile(r"^(?:replay )?(\d+) ", re.MULTILINE)


def stops(run_of_catalogue: int, broken_job: int) -> tuple[Stop, ...]:
    """The tour through a project whose catalogue was ingested by this run, and where this job failed."""
    replay = ("--env", "next", "replay")
    return (
        Stop(
            "Only what changed",
            "A day has passed and three prices are new. An incremental run asks for those pages only.",
            (("run", "catalogue", "--kind", "incremental"),),
            Site.turn_to_the_second_day,
        ),
        Stop(
            "A breaker opens, and closes",
            "The archive is being restarted. After a few errors it is left alone; then one request is let "
            "through, then more. No page is given up.",
            (("run", "archive"), ("events", "--source", "archive", "--kind", "breaker")),
        ),
        Stop(
            "A budget is a hard stop",
            "This source may send 20 requests in a run. The rest is in quarantine, not lost.",
            (("run", "metered"), ("budget", "--run", THAT_RUN)),
        ),
        Stop(
            "New logic on old pages, before it counts",
            "`--env next` names a pipeline that keeps prices in cents and drops what is dear. It is tried on "
            "the pages as they were fetched, without the network; the difference is shown, then dropped.",
            (
                (*replay, str(run_of_catalogue), "--diff", "--limit", "3"),
                (*replay, THAT_RUN, "--drop", "--yes"),
            ),
        ),
        Stop(
            "Why is it not running?",
            "`explain` asks the gates that the engine itself asks, and tells what became of a job.",
            (("explain", "flaky"), ("explain", "--job", str(broken_job))),
        ),
    )


def taken(
    folder: Path, site: Site, run_of_catalogue: int, broken_job: int
) -> Iterator[Stop | Typed]:
    """Take the tour: each stop, then each of its commands once it has been run."""
    that_run = ""
    for stop in stops(run_of_catalogue, broken_job):
        yield stop
        stop.before(site)
        for words in stop.commands:
            typed = _run(folder, tuple(that_run if word == THAT_RUN else word for word in words))
            that_run = next(iter(_RUN.findall(typed.output)), that_run)
            yield typed


def _run(folder: Path, words: tuple[str, ...]) -> Typed:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-m", "penstock", *words, "--project", str(folder)],
        env={**os.environ, "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Typed(words, done.returncode, done.stdout)
