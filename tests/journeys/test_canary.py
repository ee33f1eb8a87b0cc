"""Shadows and canaries with the real command: better and worse releases, and kills in the middle."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.canary.share import is_in_share
from penstock.jobs.job import JobState
from penstock.store.canaries import CanaryRow
from penstock.store.rows import RunRow
from tests.journeys.rig import PAGES, CountingSite, Rig, counting_site, kill, source_of, until

COUNT = 120
SOURCE = "site.example"
SAVED = 'yield {"path": response.text}'
BETTER = PAGES.replace(SAVED, 'yield {"path": response.text, "length": len(response.text)}')
# As many pages fail as do not, at once, and what it does save is wrong.
WORSE = PAGES.replace(
    SAVED,
    "if sum(response.text.encode()) % 2:\n        raise KeyError('price')\n"
    '    yield {"path": response.text, "length": -1}',
)


@pytest.fixture
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def rig(request: pytest.FixtureRequest, tmp_path: Path, site: CountingSite) -> Iterator[Rig]:
    store = "sqlite:penstock.db"
    if request.param == "postgres":
        store = request.getfixturevalue("database")
    limits = {"concurrency": 8}
    source = source_of(site, COUNT, limits=limits, degrade_after=0, retry={"tries": 1})
    with Rig(tmp_path, {SOURCE: source}, store=store) as made:
        yield made


def release_of(rig: Rig, code: str) -> str:
    """A release of this code; the project's own files stay as they were."""
    (rig.folder / "steps.py").write_text(code)
    done = rig.penstock("release", "create", "--reason", "to be tried", "--json")
    assert done.returncode == 0, done.stderr
    (rig.folder / "steps.py").write_text(PAGES)
    found: str = json.loads(done.stdout)["release"]
    return found


def told(rig: Rig, *words: str) -> Any:
    done = rig.penstock(*words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def records(rig: Rig) -> dict[str, Any]:
    return {row.key: row.data for row in rig.store.records.of("page", limit=10_000)}


def of_run(rig: Rig, run_id: int) -> RunRow:
    """The run that follows this one."""
    rows = rig.store.runs.newest(None, False, 20)
    return next(row for row in rows if row.of_run_id == run_id)


def canary(rig: Rig, number: int) -> CanaryRow:
    row = rig.store.canaries.get(number)
    assert row is not None
    return row


def test_shadow_that_is_killed_in_the_middle_shows_the_same_difference(
    rig: Rig, site: CountingSite
) -> None:
    better = release_of(rig, BETTER)
    shadowing = rig.start("shadow", SOURCE, "--release", better[:12])
    until(
        lambda: len(rig.jobs(JobState.SUCCEEDED, stage="extract")) > COUNT + 5,
        "the shadow has done a part",
        process=shadowing,
    )
    kill(shadowing.pid, signal.SIGKILL)
    shadowing.wait()
    [live, shadow] = rig.run(1), rig.run(2)
    assert (live.state, live.inserted, shadow.options.by_release) == ("completed", COUNT, better)

    done = told(rig, "replay", "2")
    assert (done["totals"]["changed"], done["totals"]["added"]) == (COUNT, 0)
    assert {each["field"] for change in done["changes"] for each in change["fields"]} == {"length"}
    # The pages of both came from one fetch of each, and nothing that the release says is live yet.
    assert set(site.counts().values()) == {1}
    assert all("length" not in data for data in records(rig).values())
    told(rig, "replay", "2", "--commit", "--yes")
    assert all(data["length"] == len(data["path"]) for data in records(rig).values())
    again = rig.penstock("shadow", SOURCE, "--release", "ffffff")
    assert (again.returncode, "no release ffffff" in again.stderr) == (2, True)


def test_better_release_passes_and_a_worse_one_is_stopped_and_rolled_back_by_itself(
    rig: Rig, site: CountingSite
) -> None:
    better, worse = release_of(rig, BETTER), release_of(rig, WORSE)
    assert rig.penstock("run", SOURCE).returncode == 0
    before, fetched = records(rig), site.counts()
    up = rig.start("up")
    limits = ("--pages", "20", "--min-pages", "20", "--yes")

    begun = told(rig, "canary", SOURCE, "--release", better, "--percent", "40", *limits)
    rig.enqueue(SOURCE)
    until(lambda: canary(rig, 1).state == "passed", "it has passed", process=up)
    until(lambda: of_run(rig, 2).is_ended, "its run has ended", process=up)
    its = of_run(rig, 2)
    longer = {key for key, data in records(rig).items() if "length" in data}
    # Each page was performed by one of the two, once, and by whom its records say.
    assert len(longer) == its.updated == rig.run(2).skipped
    # Which of them is said by their keys alone, on every host and in every run.
    salt = canary(rig, 1).salt
    assert longer == {path for path in before if is_in_share(f"{site.url}{path}", 40.0, salt)}
    assert site.counts() == {path: 2 * times for path, times in fetched.items()}
    second = rig.penstock("canary", SOURCE, "--release", worse, "--percent", "40", *limits)
    assert second.returncode != 0
    assert "canary 1 has a part of the same source" in second.stderr
    told(rig, "canary", "1", "--end", "--yes")
    assert begun["state"] == "active"

    kept = records(rig)
    told(rig, "canary", SOURCE, "--release", worse, "--percent", "40", *limits)
    [run_id] = rig.enqueue(SOURCE)
    until(lambda: of_run(rig, run_id).started_at, "it is at work", process=up)
    for pid in rig.worker_pids(up):
        kill(pid)
    until(lambda: canary(rig, 2).state == "stopped", "it is stopped", process=up)
    newest = rig.store.runs.newest(None, False, 1)[0].id
    until(lambda: rig.run(newest).is_ended, "its pages were performed again", process=up)

    shown = told(rig, "canaries", "2")
    crossed = {each["guard"] for each in shown["look"]["guards"] if each["is_crossed"]}
    assert {"failures", "yield"} <= crossed
    assert "failures" in shown["end_reason"]
    assert [each.kind for each in rig.events() if each.kind.startswith("canary.")] == [
        "canary.started", "canary.passed", "canary.ended",
        "canary.started", "canary.stopped", "canary.rolled_back",
    ]  # fmt: skip
    # No record of the worse release is left, and its pages are as the project's own files have them.
    assert all(data.get("length") != -1 for data in records(rig).values())
    assert set(records(rig)) == set(before)
    taken = {key for key in kept if records(rig)[key] != kept[key]}
    assert all("length" not in records(rig)[key] for key in taken)
    up.send_signal(signal.SIGTERM)
    assert up.wait(60) == 0
    rig.assert_fenced()


@pytest.mark.parametrize("rig", ["sqlite"], indirect=True)
def test_alert_rule_stops_a_canary_that_no_guardrail_looks_at(rig: Rig, site: CountingSite) -> None:
    file = rig.folder / "penstock.yaml"
    rules = {"failures-in-an-hour": {"failures": 5, "severity": "high"}}
    file.write_text(json.dumps({**json.loads(file.read_text()), "alert_rules": rules}))
    worse = release_of(rig, WORSE)
    assert rig.penstock("run", SOURCE).returncode == 0
    before = records(rig)
    blind = ("--percent", "40", "--min-pages", "100000", "--pages", "100000", "--yes")
    told(rig, "canary", SOURCE, "--release", worse, *blind)
    up = rig.start("up")
    rig.enqueue(SOURCE)

    until(lambda: canary(rig, 1).state == "stopped", "it is stopped", process=up)
    newest = rig.store.runs.newest(None, False, 1)[0].id
    until(lambda: rig.run(newest).is_ended, "its pages were performed again", process=up)

    row = canary(rig, 1)
    assert (row.looks, "(failures-in-an-hour) opened on site.example" in row.end_reason) == (
        0,
        True,
    )
    assert records(rig) == before
    up.send_signal(signal.SIGTERM)
    assert up.wait(60) == 0
