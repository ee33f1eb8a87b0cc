"""Code that is edited while `penstock up` runs: what is performed is what is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from tests.journeys.rig import Rig, until

STEPS = """
from penstock import Pipeline

site = Pipeline("site")


@site.step(unit="run")
def discover(ctx):
    yield {"n": 1}


@site.step(after="discover", unit="page", key="n")
def extract(page, ctx):
    ctx.save("page", key=page["n"], data={"made_by": "OLD"})
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path, {"acme.com": {"pipeline": "steps:site"}}, STEPS) as made:
        yield made


def edit(rig: Rig, text: str) -> None:
    (rig.folder / "steps.py").write_text(text)


def add_source(rig: Rig, key: str) -> None:
    file = rig.folder / "penstock.yaml"
    known = yaml.safe_load(file.read_text())
    known["sources"][key] = {"pipeline": "steps:site"}
    file.write_text(yaml.safe_dump(known))


def ended(rig: Rig, run_id: int) -> bool:
    return rig.run(run_id).is_ended


def test_what_old_code_performs_is_stamped_with_its_own_version(rig: Rig) -> None:
    up = rig.start("up")
    rig.enqueue("acme.com")
    until(lambda: ended(rig, 1), "the first run has ended", process=up)
    edit(rig, STEPS.replace("OLD", "NEW"))

    done = rig.penstock("run", "acme.com", "--detach", "--json")
    assert done.returncode == 0, done.stderr
    until(lambda: ended(rig, 2), "the second run has ended", process=up)

    [record] = rig.store.records.of("page")
    assert record.data == {"made_by": "OLD"}
    assert rig.run(2).pipeline_version == rig.run(1).pipeline_version == record.pipeline_version
    [event] = rig.events("run.version_changed")
    assert rig.run(1).pipeline_version in event.detail
    status = rig.penstock("status").stdout
    assert f"penstock up, pid {up.pid}, has an older steps.py; restart it or use --reload" in status
    [stale] = json.loads(rig.penstock("status", "--json").stdout)["stale_workers"]
    assert stale == {"pid": up.pid, "files": ["steps.py"]}
    assert f"pid {up.pid}, has an older steps.py" in rig.penstock("runs").stderr
    until(lambda: "steps.py changed" in rig.output(up), "up says so", process=up)


def test_a_source_added_meanwhile_waits_until_somebody_knows_it(rig: Rig) -> None:
    up = rig.start("up")
    until(lambda: any(code.loaded for code in rig.store.workers.codes()), "a worker", process=up)
    add_source(rig, "new.org")
    assert rig.penstock("run", "new.org", "--detach").returncode == 0
    rig.enqueue("acme.com")
    until(lambda: ended(rig, 2), "a source that is known runs", process=up)

    assert rig.run(1).state is RunState.QUEUED
    explained = rig.penstock("explain", "new.org").stdout
    assert "no worker that is alive has loaded new.org" in explained
    assert "restart penstock up" in explained
    assert "no worker that is alive has loaded new.org" in rig.penstock("status").stdout

    up.terminate()
    assert up.wait(timeout=120) == 0
    assert rig.penstock("up", "--until-idle").returncode == 0
    assert rig.run(1).state is RunState.COMPLETED


def test_reload_performs_new_attempts_with_the_new_code(rig: Rig) -> None:
    up = rig.start("up", "--reload")
    rig.enqueue("acme.com")
    until(lambda: ended(rig, 1), "the first run has ended", process=up)

    edit(rig, STEPS.replace("OLD", "NEW") + "\n(")
    until(lambda: "can't be loaded" in rig.output(up), "broken code is refused", process=up)
    edit(rig, STEPS.replace("OLD", "NEW"))
    add_source(rig, "new.org")
    until(
        lambda: any(
            code.loaded and len(code.loaded.sources) == 2 for code in rig.store.workers.codes()
        ),
        "the new code is loaded",
        process=up,
    )
    runs = rig.enqueue("acme.com", "new.org")
    until(lambda: all(ended(rig, run_id) for run_id in runs), "both have ended", process=up)

    [record] = rig.store.records.of("page")
    assert record.data == {"made_by": "NEW"}
    assert record.pipeline_version == rig.run(2).pipeline_version != rig.run(1).pipeline_version
    assert rig.jobs(JobState.QUARANTINED) == []
    up.terminate()
    assert up.wait(timeout=120) == 0, rig.output(up)
