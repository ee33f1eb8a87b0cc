"""Two trees side by side: `python -m bench.compare PATH [--only noop] [--rounds 5]`.

PATH is another checkout of Penstock. Its own `.bench/venv` is used if there is one, otherwise that of this
checkout, with its sources. Each round runs our side of each workload in both trees, in turn, at the same
size. Printed are the medians of the rounds' ratios, of speed by the clock and of processor time. On a busy
machine the second is steadier.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.rounds import (
    REPOSITORY,
    SCRATCH,
    SIDE_TIMEOUT_S,
    Side,
    Workload,
    environment_in,
    surroundings,
)
from bench.table import Scale
from bench.workloads import WORKLOADS

USUAL = ("noop", "enqueue", "site", "records", "claims", "latency", "pg-noop")


@dataclass
class Compared:
    """The rounds of one side in both trees: (seconds by the clock, seconds of processor time, result)."""

    name: str
    here: list[tuple[float, float, dict[str, Any]]] = field(default_factory=list)
    there: list[tuple[float, float, dict[str, Any]]] = field(default_factory=list)

    def line(self) -> str:
        speed = [_speed(new) / _speed(old) for new, old in zip(self.here, self.there, strict=True)]
        work = [new[1] / old[1] for new, old in zip(self.here, self.there, strict=True)]
        spread = f"{min(speed):.2f} to {max(speed):.2f}"
        return (
            f"{self.name:44} speed {statistics.median(speed):.3f} × ({spread})   "
            f"processor {statistics.median(work):.3f} ×"
        )


def _speed(measured: tuple[float, float, dict[str, Any]]) -> float:
    result = measured[2]
    if "done" in result:
        return float(result["done"]) / float(result["seconds"])
    return 1.0 / float(result["p50_ms"])


def main() -> int:
    asked = _arguments()
    other = asked.tree.resolve()
    if not (other / "src/penstock").is_dir() or not (other / "bench").is_dir():
        print(f"{other} is no checkout of Penstock with its bench", file=sys.stderr)
        return 2
    for name in asked.only or USUAL:
        workload = WORKLOADS[name](Scale(asked.quick, False, False))
        for compared in _compare(workload, other, asked.rounds):
            print(compared.line(), flush=True)
    return 0


def _compare(workload: Workload, other: Path, rounds: int) -> Iterator[Compared]:
    sides = [side for side in workload.sides if side.call.startswith("bench.ours")]
    with surroundings(workload) as (extra, new_store):
        for side in sides:
            compared = Compared(f"{workload.name}: {side.name}")
            for number in range(rounds):
                trees = [(REPOSITORY, compared.here), (other, compared.there)]
                for tree, kept in trees if number % 2 else reversed(trees):
                    with new_store() as store:
                        kept.append(_run(tree, side, {**extra, **store}))
            yield compared


def _run(tree: Path, side: Side, extra: dict[str, Any]) -> tuple[float, float, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="compare-", dir=SCRATCH) as name:
        folder = Path(name)
        work, result = folder / "work", folder / "result.json"
        work.mkdir()
        command = [str(_python_of(tree)), "-m", "bench.side", side.call]
        command += [json.dumps({**side.size, **extra}), str(result)]
        # The other tree's own bench measures it: their verbs may have other names.
        places = os.pathsep.join((os.fspath(tree), os.fspath(tree / "src")))
        environment = {**environment_in(folder, extra), "PYTHONPATH": places}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(
            command,
            cwd=work,
            env=environment,
            capture_output=True,
            timeout=SIDE_TIMEOUT_S,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if ended.returncode:
            raise SystemExit(f"{side.name} in {tree}:\n{ended.stderr.decode()[-2000:]}")
        found = json.loads(result.read_text())
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return float(found.get("seconds", 0.0)), used, found


def _python_of(tree: Path) -> Path:
    own = tree / ".bench/venv/bin/python"
    return own if own.exists() else Path(sys.executable)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("tree", type=Path, help="another checkout of Penstock")
    parser.add_argument("--only", action="append", choices=list(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
