"""Replay, diff, commit, drop and undo with the real command: no request, whatever is killed on the way."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.job import JobState
from tests.journeys.rig import PAGES, CountingSite, Rig, counting_site, kill, source_of, until

COUNT = 300
SOURCE = "site.example"
BETTER = 'yield {"path": response.text, "length": len(response.text)}'


@pytest.fixture
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


@pytest.fixture
def rig(tmp_path: Path, site: CountingSite) -> Iterator[Rig]:
    with Rig(tmp_path, {SOURCE: source_of(site, COUNT)}) as made:
        done = made.penstock("run", SOURCE)
        assert done.returncode == 0, done.stderr
        yield made


def change(rig: Rig, old: str, new: str) -> None:
    assert old in PAGES
    (rig.folder / "steps.py").write_text(PAGES.replace(old, new))


def told(rig: Rig, *words: str, code: int = 0) -> Any:
    done = rig.penstock(*words, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_today_s_logic_is_tried_on_old_pages_and_committed(rig: Rig, site: CountingSite) -> None:
    before = site.counts()
    same = told(rig, "replay", "1")
    assert (same["totals"]["same"], same["changes"]) == (COUNT, [])
    change(rig, 'yield {"path": response.text}', BETTER)

    shown = rig.penstock("replay", "1", "--html", "diff.html")
    assert shown.returncode == 0, shown.stderr
    page = (rig.folder / "diff.html").read_text()
    assert page.count("<details") == COUNT
    assert "<script" not in page
    table = rig.penstock("replay", "3", "--limit", "2")
    assert f"changed  {COUNT}" in table.stdout
    assert "penstock replay 3 --commit" in table.stdout
    [same_one, staged] = told(rig, "status")["undecided"]
    assert (same_one["run"], staged["run"], staged["of_run"]) == (2, 3, 1)
    assert staged["commands"][1:] == ["penstock replay 3 --commit", "penstock replay 3 --drop"]
    assert "apply it: penstock replay 3 --commit" in rig.penstock("status").stdout
    refused = rig.penstock("replay", "3", "--commit")
    assert (refused.returncode, "--yes" in refused.stderr) == (7, True)
    assert rig.store.records.of("page", limit=1)[0].data == {"path": "/page/0"}

    committed = told(rig, "replay", "3", "--commit", "--yes", "--reason", "with length")

    assert committed["committed"]["changed"] == COUNT
    again = rig.penstock("replay", "3", "--diff", "--json")
    assert (again.returncode, again.stdout) == (7, "")
    assert "what replay 3 had staged was committed already" in again.stderr
    rows = rig.store.records.of("page", limit=1000)
    assert all(row.data["length"] == len(row.key) and row.run == 3 for row in rows)
    assert rig.penstock("replay", "2", "--drop", "--yes").returncode == 0
    undone = told(rig, "undo", "3", "--yes")
    assert (undone["brought_back"], undone["undone_by"]) == (COUNT, 4)
    assert told(rig, "status")["undecided"] == []
    undo = told(rig, "runs", "show", "4")
    assert (undo["is_undo"], undo["of_run"], undo["replay"]["changed"]) == (True, 3, COUNT)
    assert "undo of run 3" in rig.penstock("runs").stdout
    assert {tuple(row.data) for row in rig.store.records.of("page", limit=1000)} == {("path",)}
    assert site.counts() == before
    rig.assert_sound()


def test_replay_that_was_killed_goes_on_and_so_does_its_commit(
    rig: Rig, site: CountingSite
) -> None:
    before = site.counts()
    slow = "import time; time.sleep(0.01)\n    " + BETTER
    change(rig, 'yield {"path": response.text}', slow)
    process = rig.start("replay", "1")
    until(lambda: len(rig.store.runs.newest()) == 2, "the replay is there", process=process)
    rig.wait_for_pages(2, 10, process)
    worker = rig.worker_pid(process)
    kill(process.pid)
    process.wait()
    if worker is not None:
        kill(worker)
    assert not rig.run(2).is_ended

    again = told(rig, "replay", "1")

    assert (again["replay"], again["totals"]["changed"]) == (2, COUNT)
    committing = rig.start("replay", "2", "--commit", "--yes")
    until(lambda: rig.store.replays.state(2).changed, "a batch is applied", process=committing)
    kill(committing.pid, signal.SIGKILL)
    committing.wait()
    state = rig.store.replays.state(2).state
    if state == "committing":
        assert told(rig, "replay", "2", "--commit", "--yes")["committed"]["changed"] == COUNT
    rows = rig.store.records.of("page", limit=1000)
    assert {(row.version, row.run) for row in rows} == {(2, 2)}
    assert not rig.store.replays.has_staged(2)
    assert site.counts() == before


def test_penstock_that_runs_yesterday_s_logic_does_not_replay_today_s(rig: Rig) -> None:
    up = rig.start("up")
    [second] = rig.enqueue(SOURCE)
    until(lambda: rig.run(second).is_ended, "it works with yesterday's logic", process=up)
    change(rig, 'yield {"path": response.text}', BETTER)

    done = rig.penstock("replay", "1")

    assert done.returncode == 4, done.stdout + done.stderr
    [job] = rig.jobs(JobState.QUARANTINED)
    assert "another version of the pipeline" in (job.error or "")
    up.terminate()
    up.wait()
    again = told(rig, "replay", "1")
    assert (again["replay"], again["totals"]["changed"]) == (4, COUNT)


def test_replay_of_a_pipeline_that_was_changed_again_begins_anew(rig: Rig) -> None:
    queued = told(rig, "replay", "1", "--detach")
    change(rig, 'yield {"path": response.text}', BETTER)

    again = told(rig, "replay", "1")

    assert rig.run(queued["replay"]).state == "cancelled"
    assert (again["replay"], again["totals"]["changed"]) == (3, COUNT)


def test_what_is_not_wanted_any_more_is_removed_and_comes_back(rig: Rig) -> None:
    wanted = "if response.text.endswith('0'):\n        yield {'path': response.text}"
    change(rig, 'yield {"path": response.text}', wanted)

    diff = told(rig, "replay", "1", "--limit", "1")

    assert (diff["totals"]["removed"], diff["totals"]["same"]) == (COUNT - 30, 30)
    assert len(diff["changes"]) == 1
    told(rig, "replay", "2", "--commit", "--yes")
    assert [row["records"] for row in told(rig, "records")] == [30]
    gone = rig.penstock("records", "page", "--key", "/page/1")
    assert gone.returncode == 2
    assert "was removed" in gone.stderr
    versions = told(rig, "records", "page", "--key", "/page/1", "--versions")
    assert [version.get("is_removed", False) for version in versions] == [False, True]
    change(rig, 'yield {"path": response.text}', 'yield {"path": response.text}')
    assert rig.penstock("run", SOURCE).returncode == 0
    assert [row["records"] for row in told(rig, "records")] == [COUNT]


REFUSALS = [
    (["replay"], 2, "replay what?"),
    (["replay", "1", "--source", SOURCE], 2, "replay what?"),
    (["replay", "--source", SOURCE], 2, "belong together"),
    (["replay", "--source", SOURCE, "--since", "soon"], 2, "--since can't be 'soon'"),
    (["replay", "--source", "nowhere.org", "--since", "1d"], 2, "has no source"),
    (["replay", "9"], 2, "there is no run 9"),
    (["replay", "1", "--drop"], 2, "is no replay"),
    (["replay", "1", "--force"], 2, "--force is for --commit"),
    (["replay", "1", "--quarantined"], 7, "no quarantined pages"),
    (["replay", "1", "--commit", "--html", "x.html"], 2, "--html shows"),
    (["replay", "1", "--detach", "--commit"], 2, "--detach does not wait"),
    (["replay", "1", "--html", "no/such/folder.html"], 2, "can't be written"),
    (["undo", "9"], 2, "there is no run 9"),
]


def test_what_makes_no_sense_is_told_in_a_line(rig: Rig) -> None:
    for words, code, message in REFUSALS:
        done = rig.penstock(*words)

        assert (done.returncode, message in done.stderr) == (code, True), (words, done.stderr)
        assert "Traceback" not in done.stderr


def test_all_since_then_is_replayed_by_others_when_it_is_queued(
    rig: Rig, site: CountingSite
) -> None:
    before = site.counts()

    queued = told(rig, "replay", "--source", SOURCE, "--since", "1d", "--detach")
    assert rig.penstock("up", "--until-idle").returncode == 0

    diff = told(rig, "replay", str(queued["replay"]), "--diff")
    assert (diff["totals"]["same"], diff["of_run"]) == (COUNT, None)
    assert site.counts() == before
