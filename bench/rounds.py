"""Rounds: every side of a workload in turn, again and again, each in a fresh process and folder."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import site

if TYPE_CHECKING:
    from tests.postgres.server import Server

Result = dict[str, Any]
REPOSITORY = Path(__file__).resolve().parents[1]
# Beside the sources and not in /tmp, which is memory on many machines: a sync there costs nothing.
SCRATCH = REPOSITORY / ".bench"
SIDE_TIMEOUT_S = 3600


@dataclass(frozen=True)
class Side:
    """One competitor: the function to call in a process of its own, and how much it is given to do."""

    name: str
    call: str
    size: dict[str, Any]
    rounds_at_most: int | None = None


@dataclass(frozen=True)
class Workload:
    """Work that several sides do. `agree` names what their results must have in common."""

    name: str
    title: str
    unit: str
    sides: tuple[Side, ...]
    site: site.Shape | None = None
    messages: int = 0
    agree: tuple[str, ...] = ()
    is_on_postgres: bool = False


@dataclass
class Measured:
    """What came out: every round of every side."""

    workload: Workload
    results: dict[str, list[Result]] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return max((len(results) for results in self.results.values()), default=0)

    def values(self, side: str, name: str) -> list[float]:
        return [float(result[name]) for result in self.results[side]]

    def median(self, side: str, name: str) -> float:
        return statistics.median(self.values(side, name))

    def rates(self, side: str) -> list[float]:
        return [result["done"] / result["seconds"] for result in self.results[side]]

    def rate(self, side: str) -> float:
        return statistics.median(self.rates(side))

    def ratio(self, ours: str, theirs: str) -> float:
        """The median of the rounds' ratios: what slows a whole round down leaves its ratio as it is."""
        pairs = zip(self.rates(ours), self.rates(theirs), strict=False)
        return statistics.median(our / their for our, their in pairs)


class Failed(Exception):
    """A side crashed, or two sides did not do the same work."""


def measure(workload: Workload, rounds: int, tell: Callable[[str], None]) -> Measured:
    """Run all rounds of a workload; the site and the server it needs live as long as they do."""
    measured = Measured(workload, {side.name: [] for side in workload.sides})
    with surroundings(workload) as (extra, new_store):
        for number, side in _order(workload.sides, rounds):
            with new_store() as store:
                result = run_side(side, {**extra, **store})
            measured.results[side.name].append(result)
            tell(f"{workload.name:10} round {number}/{rounds}  {side.name:28} {_brief(result)}")
    _insist_on_agreement(measured)
    return measured


NewStore = Callable[[], AbstractContextManager[dict[str, Any]]]


@contextmanager
def surroundings(workload: Workload) -> Iterator[tuple[dict[str, Any], NewStore]]:
    """What all sides of a workload share: where the site is, say, and how to get a store for a round."""
    with ExitStack() as stack:
        extra: dict[str, Any] = {}
        if workload.site:
            extra |= stack.enter_context(site.running(workload.site))
        if workload.messages:
            from bench import mailbox

            extra |= stack.enter_context(mailbox.running(workload.messages))
        server = None
        if workload.is_on_postgres:
            from bench import postgres

            server = stack.enter_context(postgres.running(SCRATCH))
        yield extra, lambda: _store(server)


@contextmanager
def _store(server: Server | None) -> Iterator[dict[str, Any]]:
    """A database that nobody has used yet, where one is needed."""
    if server is None:
        yield {}
        return
    from bench import postgres

    with postgres.database(server) as url:
        yield {"store": url}


def _order(sides: tuple[Side, ...], rounds: int) -> Iterator[tuple[int, Side]]:
    """Each round begins with another side, so that no side is always the one after a pause."""
    for number in range(rounds):
        start = number % len(sides)
        for side in (*sides[start:], *sides[:start]):
            if side.rounds_at_most is None or number < side.rounds_at_most:
                yield number + 1, side


def run_side(
    side: Side,
    extra: dict[str, Any],
    asked: dict[str, str] | None = None,
    places: tuple[Path, ...] = (),
) -> Result:
    """One round of a side, with what it is `asked` in its environment and `places` on its path."""
    with _folder() as folder:
        work, result, log = folder / "work", folder / "result.json", folder / "log"
        work.mkdir()
        size = json.dumps({**side.size, **extra})
        command = [sys.executable, "-m", "bench.side", side.call, size, str(result)]
        with log.open("wb") as output:
            ended = subprocess.run(
                command,
                cwd=work,
                env={**environment_in(folder, extra, places), **(asked or {})},
                stdout=output,
                stderr=output,
                timeout=SIDE_TIMEOUT_S,
                check=False,
            )
        if ended.returncode or not result.exists():
            tail = log.read_text(errors="replace")[-2000:]
            raise Failed(f"{side.name} ({side.call}) ended with {ended.returncode}:\n{tail}")
        found: Result = json.loads(result.read_text())
        return found


@contextmanager
def _folder() -> Iterator[Path]:
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="round-", dir=SCRATCH) as name:
        yield Path(name)


def environment_in(
    folder: Path, extra: dict[str, Any], places: tuple[Path, ...] = ()
) -> dict[str, str]:
    """A home of its own, dlt told not to call home, and the site's certificate to trust if it has one."""
    trusted = {"SSL_CERT_FILE": extra["certificate"]} if "certificate" in extra else {}
    more = filter(None, [os.environ.get("PYTHONPATH")])
    path = os.pathsep.join([str(REPOSITORY), *map(str, places), *more])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "HOME": str(folder),
        "DLT_DATA_DIR": str(folder / "dlt"),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        **trusted,
    }


def _brief(result: Result) -> str:
    if "done" in result:
        return f"{result['done'] / result['seconds']:>12,.0f} a second"
    return "  ".join(f"{name} {value:,.2f}" for name, value in result.items() if name != "points")


def _insist_on_agreement(measured: Measured) -> None:
    for name in measured.workload.agree:
        said = {
            (side, json.dumps(result[name]))
            for side, results in measured.results.items()
            for result in results
            if name in result
        }
        if len({value for _, value in said}) > 1:
            raise Failed(f"{measured.workload.name}: {name} differs between sides: {sorted(said)}")
