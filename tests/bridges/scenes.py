"""Projects that the bridges are tested with, and what their ends must look like."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.builder.registry import builder
from penstock.jobs.job import JobState
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.pipeline.selection import select
from tests.journeys.rig import Rig, kill, until
from tests.journeys.test_prepared_runs import STAGES, STEPS

__all__ = [
    "STAGES",
    "STEPS",
    "assert_sound",
    "builder_job_in",
    "builder_shaped",
    "command_of",
    "configured",
    "dataset_of",
    "days_rig",
    "edges_of",
    "kill_amid",
    "mended",
    "rig_of",
    "source",
    "task_of",
    "waiting_rig_of",
]

DAYS = """
from penstock import Pipeline

days = Pipeline("days")


@days.step(unit="run")
def discover(ctx):
    return []


@days.step(after="discover", unit="page", windows=True)
def fetch(ctx):
    return {"day": f"{ctx.window.partition} {ctx.window.start:%Y-%m-%d}"}


@days.step(after="fetch", unit="candidate")
def persist(row, ctx):
    ctx.save("day", key=row["day"], data=row)
"""


def source(pages: int, **params: Any) -> dict[str, Any]:
    return {
        "pipeline": "steps:pages",
        "params": {"pages": pages, **params},
        "retry": {"tries": 1},
    }


def rig_of(folder: Path, pages: int, store: str = "sqlite:penstock.db", **params: Any) -> Rig:
    return Rig(folder, {"shop": source(pages, **params)}, STEPS, store=store)


# A drain does hundreds of such pages between two looks of whoever wants to kill it: so it waits half-way.
WAITING = """
import time
from pathlib import Path


def wait(stage, page, ctx):
    go = Path(__file__).with_name(f"go-{stage}")
    is_late = stage in ctx.params["waits"] and page["number"] >= ctx.params["pages"] // 2
    while is_late and not go.exists():
        time.sleep(0.01)
"""


def waiting_rig_of(folder: Path, pages: int, *stages: str) -> Rig:
    """In these stages the second half of the pages waits until `kill_amid` has killed their drain."""
    steps = STEPS
    for stage in ("extract", "clean"):
        begin = f"def {stage}(page, ctx):\n"
        assert begin in steps
        steps = steps.replace(begin, f"{begin}    wait({stage!r}, page, ctx)\n")
    return Rig(folder, {"shop": source(pages, waits=stages)}, steps + WAITING)


def kill_amid(rig: Rig, stage: str, ended: int) -> None:
    """Kill the drain that has done so many jobs of a stage; the next one does not wait."""
    kill(_drain_amid(rig, stage, ended))
    (rig.folder / f"go-{stage}").touch()


def days_rig(folder: Path) -> Rig:
    """A source with a history: a record for each day that a backfill covers."""
    backfill = {"window": "1d", "partitions": ["AAPL"]}
    return Rig(folder, {"prices": {"pipeline": "steps:days", "backfill": backfill}}, DAYS)


SHAPED = """
from dataclasses import replace

from penstock.builder.registry import builder
from penstock.pipeline.registry import Registry

companies = Registry("companies", default="standard")


def function_of(step):
    if step.is_gather:
        return "gather"
    return "nothing" if step.after or step.needs else "first"


companies.steps.update(
    {
        name: replace(
            step,
            target=f"shaped:{function_of(step)}",
            options={**step.options, "key": None, "retry": None},
        )
        for name, step in builder.steps.items()
    }
)
companies.profiles.update(builder.profiles)
companies.features.update(builder.features)


def first(ctx):
    return []


def nothing(item):
    return item


def gather(ctx):
    return None
"""


def builder_shaped(folder: Path, profile: str) -> Rig:
    """A source with the steps and edges of the builder, which do nothing."""
    (folder / "shaped.py").write_text(SHAPED)
    return Rig(folder, {"companies": {"pipeline": "shaped:companies", "profile": profile}})


COMPANIES = """\
name,street,city,postcode,region,phone,email,website
Acme Bakery,12 Main Street,Springfield,62701,IL,+1 217 555 0100,hello@acme.com,https://acme.com
Corner Bread LLC,4 Oak Avenue,Boston,02108,MA,+1 617 555 0142,info@example.com,
Old Mill Bakery,77 River Road,Salem,97301,OR,+1 503 555 0199,,
"""


def builder_job_in(folder: Path, **about: Any) -> None:
    """A job.yaml of three companies, which asks nobody."""
    (folder / "companies.csv").write_text(COMPANIES)
    job = {"profile": "quick", "dumps": [{"path": "companies.csv"}], **about}
    (folder / "job.yaml").write_text(json.dumps(job))


def dataset_of(folder: Path) -> list[dict[str, Any]]:
    """The companies of the package that a job of the builder has written."""
    [file] = (folder / "out").rglob("companies.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def command_of(step: str, folder: Path) -> int | None:
    """The process that runs this step of the job in a folder: the command, not the engine's task."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if {b"run-step", step.encode(), bytes(folder / "job.yaml")} <= set(words):
                return int(place.name)
    return None


def task_of(command: int) -> int:
    """The engine's process that has started a command."""
    found = _parent_of(command)
    assert found is not None
    return found


def mended(rig: Rig) -> None:
    """The step that fails on bad pages fails no longer."""
    (rig.folder / "steps.py").write_text(STEPS.replace("raise ValueError", "str"))


def assert_sound(rig: Rig) -> None:
    """As the rig does, but for the command: the environment of an engine lacks some of its modules."""
    assert rig.jobs(*OPEN_JOB_STATES) == []
    assert rig.store.workers.all() == []
    rig.assert_fenced()
    assert rig.store.upkeep.check() == []


def edges_of(profile: str) -> set[tuple[str, str]]:
    """The edges of a profile of the builder, as its registry says."""
    return {(before, each.name) for each in select(builder, profile).steps for before in each.after}


def _drain_amid(rig: Rig, stage: str, ended: int) -> int:
    """Until a drain has done so many jobs of a stage: the process of its task."""

    def is_amid() -> bool:
        return len(rig.jobs(JobState.SUCCEEDED, stage=stage)) >= ended

    until(is_amid, f"{ended} jobs of {stage} are done")
    found: int = until(lambda: _drain_pid(rig), "its drain is at work")
    return found


def _drain_pid(rig: Rig) -> int | None:
    """The process that has a worker of this project: the task's own."""
    for worker in rig.store.workers.all():
        parent = _parent_of(worker.pid)
        if worker.scope and parent is not None:
            return parent
    return None


def _parent_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


def configured(folder: Path, **changes: Any) -> None:
    """Change keys of a rig's penstock.yaml."""
    file = folder / "penstock.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
