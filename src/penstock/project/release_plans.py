"""What a release would perform for each source, found out in a process of its own: its version and its plans.

python -P -m penstock.project.release_plans --project FOLDER --home ROOT [--env NAME]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import PenstockError, Refused
from penstock.jobs.replay import entry_stages
from penstock.jobs.run import Plan, RunKind
from penstock.pipeline.version import version_of
from penstock.project.released import open_released
from penstock.settings import Settings

KINDS = (RunKind.FULL, RunKind.INCREMENTAL)
LONGEST_S = 120.0


class SourcePlans(msgspec.Struct, frozen=True):
    """What a release performs for one source: a plan for each kind of run."""

    version: str
    plans: dict[str, Plan]
    gathers: tuple[str, ...] = ()
    is_stream: bool = False
    # Why it can't be loaded.
    error: str = ""

    @property
    def pages(self) -> tuple[str, ...]:
        """The stages of its pages."""
        plan = self.plans.get(RunKind.FULL)
        pages = entry_stages(plan) if plan is not None else ()
        return tuple(name for name in pages if plan and plan.stage(name).unit == "page")  # type: ignore[union-attr]


def plans_of(settings: Settings, release: str, sources: Sequence[str]) -> dict[str, SourcePlans]:
    """What the release would do for these sources; refused where that can't be found out."""
    command = [
        sys.executable, "-P", "-m", "penstock.project.release_plans",
        "--project", str(settings.root), "--release", release,
    ]  # fmt: skip
    if settings.environment:
        command += ["--env", settings.environment]
    try:
        done = subprocess.run(  # noqa: S603  our own interpreter and module
            [*command, *sources],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"the release can't be loaded within {LONGEST_S:g} s") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip() or f"it ended with {done.returncode}"
        raise Refused(f"the release can't be loaded: {words}", code="release_broken")
    # What its code prints comes before.
    answer = done.stdout.rpartition(b"\n")[2]
    return msgspec.json.decode(answer, type=dict[str, SourcePlans])


def main() -> int:
    parser = argparse.ArgumentParser(prog="penstock.project.release_plans")
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--env")
    parser.add_argument("sources", nargs="*")
    args = parser.parse_args()
    try:
        found = _plans(args)
    except PenstockError as error:
        print(f"{error.message}\n  {error.hint}".rstrip(), file=sys.stderr)
        return 1
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(found))
    return 0


def _plans(args: Any) -> dict[str, SourcePlans]:
    project = open_released(args.project, args.env, args.release)
    found = {}
    for key in args.sources:
        source = project.settings.sources.get(key)
        if source is None:
            found[key] = SourcePlans("", {}, error="the release has no such source")
            continue
        try:
            graph = project.graph(source)
        except PenstockError as error:
            found[key] = SourcePlans("", {}, error=error.message)
            continue
        plans = {kind.value: graph.plan(source.priority, kind) for kind in KINDS}
        found[key] = SourcePlans(
            version_of(graph, source),
            plans,
            tuple(stage.name for stage in graph.stages if stage.is_gather),
            any(stage.is_stream for stage in graph.stages),
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
