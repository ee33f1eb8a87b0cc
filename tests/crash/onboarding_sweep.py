"""Kill -9 at each write on the way of a source, from its proposal to its end.

Every point is a folder of its own: go on until the kill, look at what is left, go on to the end, look again.
What a verb has answered is written down elsewhere; each move must be in the journal once, with what it does.
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
from collections import Counter
from pathlib import Path

from penstock.app import Project
from penstock.gates.onboarding import SourceState
from penstock.settings import load_settings
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal
from penstock.testing.crash.faults import KILLED, Count, FaultyDisk, KillAt, Plan, fresh_folder

FILE = """\
# Kept as it is.
project: onboarding
onboarding: required
"""
STEPS = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    for number in range(3):
        yield {"number": number}


@shop.step(after="discover", unit="page", key="number")
async def extract(page, ctx):
    ctx.save("product", key=str(page["number"]), data=page)
"""
SOURCE = "new"
MOVES = (
    "source.proposed",
    "source.owner_changed",
    "source.approved",
    "source.activated",
    "source.legal_hold",
    "source.legal_release",
    "source.retired",
)
# It takes a second; a busy machine may take its time.
TOO_LONG_S = 120
MOST_ACTS = 30


class Onboarded(Project):
    """A project whose disk follows a plan."""

    def __init__(self, folder: Path, plan: Plan | None = None) -> None:
        self._disk = FaultyDisk(plan) if plan is not None else None
        self.virtual = VirtualClock()
        super().__init__(load_settings(folder), self.virtual)

    def open_store(self) -> SqliteStore:
        vfs = self._disk.name if self._disk is not None else None
        return SqliteStore(self.settings.store_file, self.virtual, vfs=vfs)


def go_on(folder: Path, plan: Plan | None, acks: Path) -> None:
    """What a person who knows nothing of the crash does: look where the source is, and do the next thing."""
    project = Onboarded(folder, plan)
    try:
        project.connection.quick_check()
        for worker in project.connection.workers.all():
            project.connection.workers.bury(worker.id, "it was gone")
        for _ in range(MOST_ACTS):
            done = _next(project)
            if not done:
                return
            with acks.open("a") as file:
                file.write(f"{done}\n")
    finally:
        project.close()


def _next(project: Onboarded) -> str:
    """The next act of the way; what it has moved, or "" at the end."""
    sources, known = project.sources, project.connection.onboardings.get(SOURCE)
    if known is None:
        sources.propose(SOURCE, keys={"pipeline": "kill_steps:shop"}, reason="found")
        return "source.proposed"
    if not known.owner:
        sources.own(SOURCE, "team")
        return "source.owner_changed"
    if sources.compliance(SOURCE).gaps:
        sources.accept_terms(SOURCE, reason="read by legal")
        return "checked"
    if known.state == SourceState.PROPOSED:
        sources.approve(SOURCE)
        return "source.approved"
    if known.state == SourceState.TRIAL:
        return _try_or_activate(project)
    if known.state == SourceState.ACTIVE:
        return _end(project)
    return ""


def _try_or_activate(project: Onboarded) -> str:
    if any(each.state == "completed" for each in project.sources.trials(SOURCE)):
        project.sources.activate(SOURCE)
        return "source.activated"
    project.sources.trial(SOURCE)
    network = ScriptedNetwork.of_pages({})
    with Simulation(project, network, seed=1, clock=project.virtual) as simulation:
        simulation.run()
    return "tried"


def _end(project: Project) -> str:
    """A run waits when the source is put on hold and when it is retired."""
    seen, kinds = project.sources.onboarding(SOURCE), _kinds(project)
    if project.connection.runs.newest(limit=1)[0].kind != "full":
        project.runs.start(SOURCE, "full")
        return "started"
    if not kinds["source.legal_hold"]:
        project.sources.legal_hold(SOURCE, reason="a letter")
        return "source.legal_hold"
    if seen.legal_hold_at is not None:
        project.sources.legal_release(SOURCE, reason="settled")
        return "source.legal_release"
    project.sources.retire(SOURCE, reason="not needed")
    return "source.retired"


def _kinds(project: Project) -> Counter[str]:
    return Counter(event.kind for event in journal(project))


def problems(folder: Path, acks: Path) -> list[str]:
    """What is wrong with what a crash left."""
    project = Onboarded(folder)
    try:
        found, kinds = project.connection.upkeep.check(), _kinds(project)
        told = acks.read_text().split() if acks.exists() else []
        found += [
            f"{move} was answered and is lost" for move in told if move in MOVES and not kinds[move]
        ]
        found += [f"{move} was done twice" for move in MOVES if kinds[move] > 1]
        known = project.connection.onboardings.get(SOURCE)
        has_moved = {
            "source.proposed": known is not None,
            "source.approved": known is not None and known.approved_at is not None,
            "source.activated": known is not None and known.activated_at is not None,
            "source.retired": known is not None and known.state == SourceState.RETIRED,
        }
        found += [
            f"{move}: the journal and the state disagree"
            for move, is_so in has_moved.items()
            if is_so != bool(kinds[move])
        ]
        is_written = SOURCE in project.settings.sources
        if kinds["source.approved"] and not is_written:
            found.append("it was approved, and is not in penstock.yaml")
        if not folder.joinpath("penstock.yaml").read_text().startswith(FILE.rstrip()):
            found.append("penstock.yaml is not what it was")
        if project.connection.records.of("product", "", 10):
            found.append("a trial has saved records")
        return found
    finally:
        project.close()


def problems_at_the_end(folder: Path, acks: Path) -> list[str]:
    found = problems(folder, acks)
    project = Onboarded(folder)
    try:
        kinds = _kinds(project)
        found += [f"{move} is missing" for move in MOVES if kinds[move] != 1]
        runs = project.connection.runs.newest(limit=100)
        found += [f"run {run.id} goes on" for run in runs if not run.is_ended]
        found += [
            f"run {r.id} has staged" for r in runs if project.connection.replays.has_staged(r.id)
        ]
        if folder.joinpath("penstock.yaml").read_text().count(f"{SOURCE}:") != 1:
            found.append("penstock.yaml has it more than once, or not at all")
        return found
    finally:
        project.close()


def _in_child(folder: Path, plan: Plan, acks: Path) -> int:
    pid = os.fork()
    if pid == 0:
        signal.alarm(TOO_LONG_S)
        try:
            go_on(folder, plan, acks)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sweep(root: Path, wanted: int, seed: int) -> tuple[str, list[str]]:
    folder, acks, made = root / "project", root / "elsewhere" / "acks", root / "made"
    rng = random.Random(seed)

    def renew() -> None:
        fresh_folder(folder)
        fresh_folder(acks.parent)
        (folder / "penstock.yaml").write_text(FILE)
        (folder / "kill_steps.py").write_text(STEPS)
        # An empty database, so that no point is one of making it.
        if not made.exists():
            project = Onboarded(folder)
            project.connection.quick_check()
            project.close()
            shutil.copytree(folder, made)
        for file in made.glob("penstock.db*"):
            shutil.copy(file, folder / file.name)

    renew()
    plan = Count()
    go_on(folder, plan, acks)
    wrong = [f"without a fault: {each}" for each in problems_at_the_end(folder, acks)]
    there = sum(count for kind, count in plan.seen.items() if kind != "read")
    points = sorted(rng.sample(range(1, there + 1), min(wanted, there)))
    for point in points:
        renew()
        if (code := _in_child(folder, KillAt(point), acks)) != KILLED:
            wrong.append(f"kill at {point}: the process ended with {code}")
        wrong += [f"kill at {point}: {each}" for each in problems(folder, acks)]
        go_on(folder, None, acks)
        wrong += [
            f"kill at {point}, at the end: {each}" for each in problems_at_the_end(folder, acks)
        ]
    return f"{len(points)} of {there} points killed", wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.crash.onboarding_sweep")
    parser.add_argument("--points", type=int, default=1 << 30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    root = Path(tempfile.mkdtemp(prefix="penstock-onboarding-", dir=memory))
    sys.path.insert(0, str(root / "project"))
    try:
        words, wrong = sweep(root, args.points, args.seed)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{words}; {len(wrong)} violations; seed {args.seed}")
    for line in wrong[:20]:
        print(f"  {json.dumps(line)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
