"""Kills processes at moments that a seed chooses, and remembers when."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.prove.processes import kill, pause, until
from penstock.prove.workplace import Workplace

VICTIMS = ("worker", "supervisor", "both")
# From its start until it has taken over what its predecessor left, a command needs about this long.
STARTING_S = 1.2
LONGEST_RUN_S = 600.0


@dataclass(frozen=True, slots=True)
class Strike:
    """Who was killed, and when, by the store's clock; `before` are the workers that were known by then."""

    victim: str
    at: float
    before: frozenset[str]


class Killer:
    """Kills at moments that a seed chooses: while a process starts, or after some pages more.

    A job under which three workers died is taken for poison, and rightly so. Therefore two kills in
    a row never come while a process starts, and a kill after progress waits until the jobs that
    died before have been settled: no job dies three times.
    """

    def __init__(
        self, place: Workplace, rng: random.Random, run_id: int, pages: int, kills: int
    ) -> None:
        self.place = place
        self.rng = rng
        self.run_id = run_id
        # On average half of this between two kills, and several times as many while those that died are
        # settled: what was claimed ahead has died, too.
        self.most = max(1, pages // (4 * kills))
        self.is_after_start = True
        self.deaths: dict[str, int] = dict.fromkeys(VICTIMS, 0)
        self.strikes: list[Strike] = []

    def wait(self, process: subprocess.Popen[str]) -> bool:
        """Wait for the next moment; False if the process ended before it came."""
        self.is_after_start = self.is_after_start or self.rng.random() < 0.7
        if self.is_after_start:
            self._wait_for_progress(process)
        else:
            pause(self.rng.uniform(0.0, STARTING_S), process)
        self.is_after_start = not self.is_after_start
        return process.poll() is None

    def _wait_for_progress(self, process: subprocess.Popen[str]) -> None:
        until(self._no_job_has_died, "the jobs that died are settled", process=process)
        goal = self.place.run(self.run_id).pages_done + self.rng.randint(0, self.most)
        self.place.wait_for_pages(self.run_id, goal, process)

    def _no_job_has_died(self) -> bool:
        return not any(job.deaths for job in self.place.jobs(*OPEN_JOB_STATES))

    def strike(self, process: subprocess.Popen[str]) -> bool:
        """Kill someone; True if the supervisor is dead."""
        workers = self.place.worker_pids(process)
        # While a process starts, nobody else is there yet.
        victim = self.rng.choice(VICTIMS) if workers else "supervisor"
        known = frozenset(worker.id for worker in self.place.store.workers.all())
        self.strikes.append(Strike(victim, self.place.store.now(), known))
        if victim != "supervisor":
            kill(self.rng.choice(workers))
        if victim != "worker":
            process.kill()
            process.wait()
        self.deaths[victim] += 1
        return victim != "worker"


def survive(
    place: Workplace,
    killer: Killer,
    kills: int,
    on_kill: Callable[[int], None] = lambda _: None,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Work off a run in spite of a killer. `goes_on` may end the killing early; the run goes on."""
    process = place.start("up", "--until-idle")
    while len(killer.strikes) < kills and goes_on() and killer.wait(process):
        if killer.strike(process):
            process = place.start("up", "--until-idle")
        on_kill(len(killer.strikes))
    code = place.wait(process, LONGEST_RUN_S)
    if code != 0:
        raise AssertionError(f"`penstock up` ended with {code}: {place.output(process)[-2000:]}")


def recovery_times(place: Workplace, strikes: list[Strike]) -> list[float]:
    """For each kill, after how many seconds a worker that was not there before began a job.

    A kill while nobody worked, or one that another one followed before anybody began, has no time.
    """
    starts = [(event.at, event.worker) for event in place.events("job.started")]
    found = []
    ends = [*[strike.at for strike in strikes[1:]], float("inf")]
    for strike, end in zip(strikes, ends, strict=True):
        later = [
            at for at, worker in starts if strike.at < at <= end and worker not in strike.before
        ]
        if strike.before and later:
            found.append(min(later) - strike.at)
    return found
