"""Kill, cut the power or fail an operation at each point of a whole small run, and look at what is left.

    python -m penstock.testing.crash kill --points 200    ended as by `kill -9` at the n-th write or sync
    python -m penstock.testing.crash power --points 300   the power goes there, and unsynced writes with it
    python -m penstock.testing.crash fail --seed 7        the n-th read, write or sync fails, once or on
    python -m penstock.testing.crash full            the disk is full from the n-th write on, for a while
    python -m penstock.testing.crash kill --of backfill   the same with a backfill instead of a run

The process has one thread, so a fork of it is a worker that costs a few milliseconds. Every point is
a folder of its own: run until the fault, look, take over (in every second point that is killed too),
finish, and ask the oracle. Prints one line of figures; exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import TypeVar

from penstock.clock import SystemClock
from penstock.errors import StoreError
from penstock.testing.crash.faults import (
    KILLED,
    Count,
    FailAt,
    KillAt,
    Plan,
    PowerCut,
    fresh_folder,
)
from penstock.testing.crash.small_run import (
    SCENES,
    WORDS,
    Facts,
    facts,
    lay_out,
    problems_after_crash,
    problems_at_the_end,
    work,
)

CLOCK = SystemClock()
Thing = TypeVar("Thing")
# It takes a tenth of a second; a busy machine may take its time.
TOO_LONG_S = 60
ENDED_WELL, ENDED_BY_STORE, ENDED_BADLY = 0, 5, 1


@dataclass(frozen=True, slots=True)
class Time:
    """How long a sweep begins new points: as usual, or longer until it has the least points."""

    usual_s: float = inf
    least: int = 0
    longest_s: float = inf


ENDLESS = Time()


class Sweep:
    """One sweep in a folder: its points, and what was found wrong at them."""

    def __init__(
        self, root: Path, rng: random.Random, scene: str = "full", time: Time = ENDLESS
    ) -> None:
        self.scene = scene
        self._time, self._began = time, CLOCK.monotonic()
        self.folder = root / "project"
        self.acks = root / "elsewhere" / "acks"
        self.rng = rng
        self.wrong: list[str] = []
        self.done = 0
        self.expected = self._uninterrupted()

    def in_time(self, things: Iterable[Thing]) -> Iterator[Thing]:
        """These, one after the other, as long as there is time."""
        for thing in takewhile(lambda _: self._has_time(), things):
            yield thing
            self.done += 1

    def _has_time(self) -> bool:
        gone = CLOCK.monotonic() - self._began
        return gone < (self._time.longest_s if self.done < self._time.least else self._time.usual_s)

    def renew(self) -> None:
        fresh_folder(self.folder)
        lay_out(self.folder, self.scene)
        fresh_folder(self.acks.parent)

    def _uninterrupted(self) -> Facts:
        """What the run comes to, and how many points it has, when nothing goes wrong."""
        self.renew()
        plan = Count()
        work(self.folder, plan, self.acks, 1, self.scene)
        self.operations = plan.seen
        self.points = sum(count for kind, count in plan.seen.items() if kind != "read")
        found = facts(self.folder)
        words = {key for name, key in found.records if name == "word"}
        if words != WORDS or found.state != "completed":
            raise RuntimeError(f"the run is {found.state} without any fault, with {sorted(words)}")
        return found

    def in_child(self, plan: Plan, seed: int) -> int:
        """Work in a process of its own; answers how it ended."""
        pid = os.fork()
        if pid == 0:
            signal.alarm(TOO_LONG_S)
            os._exit(_attempt(lambda: work(self.folder, plan, self.acks, seed, self.scene)))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def report(self, where: str, problems: list[str]) -> None:
        self.wrong += [f"{where}: {problem}" for problem in problems]

    def kill(self, point: int) -> None:
        self.renew()
        where = f"kill at {point}"
        self._expect(where, self.in_child(KillAt(point), seed=1), KILLED)
        self.look(where)
        if point % 2:
            again = self.rng.randint(1, 300)
            where += f", then at {again}"
            self._expect(where, self.in_child(KillAt(again), seed=2), KILLED, ENDED_WELL)
            self.look(where)
        self.end(where)

    def cut_power(self, point: int, seed: int) -> None:
        self.renew()
        where = f"power cut at {point}, seed {seed}"
        self._expect(where, self.in_child(PowerCut(random.Random(seed), point), seed=1), KILLED)
        self.look(where)
        self.end(where)

    def fail(self, kind: str, point: int, *, is_sticky: bool, is_full: bool) -> None:
        self.renew()
        plan = FailAt(kind, point, is_sticky, is_full)
        where = f"{plan}"
        self._expect(where, self.in_child(plan, seed=1), ENDED_WELL, ENDED_BY_STORE)
        self.look(where)
        self.end(where)

    def look(self, where: str) -> None:
        self.report(where, problems_after_crash(self.folder, self.acks))

    def end(self, where: str) -> None:
        work(self.folder, None, self.acks, 3, self.scene)
        self.report(where, problems_at_the_end(self.folder, self.expected))

    def _expect(self, where: str, code: int, *expected: int) -> None:
        if code not in expected:
            self.wrong.append(f"{where}: the process ended with {code}")


def _attempt(act: Callable[[], None]) -> int:
    try:
        act()
    except StoreError:
        return ENDED_BY_STORE
    except BaseException:
        traceback.print_exc()
        return ENDED_BADLY
    return ENDED_WELL


def kill_sweep(sweep: Sweep, wanted: int) -> str:
    there = sweep.points
    points = sorted(sweep.rng.sample(range(1, there + 1), min(wanted, there)))
    for point in sweep.in_time(points):
        sweep.kill(point)
    return f"{sweep.done} of {there} points killed, every second one again while it recovered"


def power_sweep(sweep: Sweep, wanted: int) -> str:
    there = sweep.points
    for _ in sweep.in_time(range(wanted)):
        sweep.cut_power(sweep.rng.randint(1, there), sweep.rng.getrandbits(32))
    return f"{sweep.done} power cuts at random ones of {there} points"


def fail_sweep(sweep: Sweep, wanted: int) -> str:
    cases = [
        (kind, point, is_sticky, is_full)
        for kind in ("read", "write", "sync")
        for point in range(1, sweep.operations[kind] + 1)
        for is_sticky in (False, True)
        for is_full in ((False, True) if kind == "write" else (False,))
    ]
    chosen = sweep.rng.sample(cases, min(wanted, len(cases)))
    for kind, point, is_sticky, is_full in sweep.in_time(chosen):
        sweep.fail(kind, point, is_sticky=is_sticky, is_full=is_full)
    return f"{sweep.done} of {len(cases)} disk errors (read, write, sync, space; once or lasting)"


def full_sweep(sweep: Sweep, wanted: int) -> str:
    there = sweep.operations["write"]
    points = sweep.rng.sample(range(1, there + 1), min(wanted, there))
    for point in sweep.in_time(points):
        sweep.fail("write", point, is_sticky=True, is_full=True)
    return f"{sweep.done} of {there} writes at which the disk became full for a while"


SWEEPS = {"kill": kill_sweep, "power": power_sweep, "fail": fail_sweep, "full": full_sweep}


@contextmanager
def _folder(place: Path | None) -> Iterator[Path]:
    # In memory if possible: what is tested is the order of writes, not the disk.
    memory = Path("/dev/shm")  # noqa: S108
    if place is None and os.access(memory, os.W_OK):
        place = memory
    folder = Path(tempfile.mkdtemp(prefix="penstock-crash-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="penstock.testing.crash")
    parser.add_argument("sweep", choices=SWEEPS)
    parser.add_argument("--of", choices=SCENES, default="full")
    parser.add_argument("--points", type=int, default=1 << 30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=inf, help="begin no point after these")
    parser.add_argument("--least", type=int, default=0, help="but begin at least so many points")
    parser.add_argument("--longest", type=float, default=inf, help="unless these are over, too")
    parser.add_argument(
        "--dir", type=Path, help="where the files lie (in memory, if there is room)"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    began = CLOCK.monotonic()
    with _folder(args.dir) as root:
        time = Time(args.seconds, args.least, args.longest)
        sweep = Sweep(root, random.Random(args.seed), args.of, time)
        words = SWEEPS[args.sweep](sweep, args.points)
    seconds = CLOCK.monotonic() - began
    if args.json:
        print(
            json.dumps(
                {
                    "words": words,
                    "points": sweep.done,
                    "seconds": seconds,
                    "violations": sweep.wrong,
                }
            )
        )
        return 1 if sweep.wrong else 0
    print(f"{words}; {seconds:.0f} s; {len(sweep.wrong)} violations; seed {args.seed}")
    for line in sweep.wrong[:20]:
        print(f"  {line}")
    return 1 if sweep.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
