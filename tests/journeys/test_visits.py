"""Incremental runs, probes and degraded sources by the real command against a site that changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.changing_site import ChangingSite, changing_site
from tests.journeys.rig import Rig, counting_site, kill, source_of, until

OLD = "2020-01-01"
STEPS = """
from penstock import Pipeline

VERSION = "{version}"
pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {{"url": url}}


@pages.step(after="discover", unit="page", key="url"{isolation})
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    for part in ("text", "length"):
        yield {{"url": page["url"], "part": part, "text": response.text, "version": VERSION}}


@pages.step(after="extract", unit="candidate")
def persist(page, ctx):
    if page["part"] == "text":
        ctx.save("page", key=page["url"].rpartition("/")[2], data=page, score=0.5)
"""


@pytest.fixture
def site() -> Iterator[ChangingSite]:
    with changing_site() as made:
        made.page("/a", "one", OLD)
        made.page("/b", "two")
        made.page("/c", "three")
        yield made


def a_rig(
    folder: Path,
    site: ChangingSite,
    isolation: str = "",
    store: str = "sqlite:penstock.db",
    **more: Any,
) -> Rig:
    source = {
        "pipeline": "steps:pages",
        "params": {"sitemap": f"{site.url}/sitemap.xml"},
        "fetch": {"allow_private": True, "robots": False},
        **more,
    }
    steps = STEPS.format(version="v1", isolation=isolation)
    return Rig(folder, {"local": source}, steps, store=store)


def run(rig: Rig, kind: str, code: int = 0) -> dict[str, Any]:
    done = rig.penstock("run", "local", "--kind", kind, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def versions(rig: Rig) -> set[str]:
    return {row.data["version"] for row in rig.store.records.of("page")}


@pytest.mark.parametrize("isolation", ["", ', isolation="process"'])
def test_second_run_fetches_only_what_changed(
    tmp_path: Path, site: ChangingSite, isolation: str
) -> None:
    with a_rig(tmp_path, site, isolation) as rig:
        assert run(rig, "incremental")["counts"]["inserted"] == 3
        assert site.take()[1] == {"/a": 1, "/b": 1, "/c": 1}

        site.page("/c", "three, changed")
        report = run(rig, "incremental")
        asked, sent = site.take()
        assert asked == {"/sitemap.xml": 1, "/b": 1, "/c": 1}
        assert sent == {"/c": 1}
        assert report["state"] == "completed"
        assert (report["counts"]["pages_unchanged"], report["counts"]["updated"]) == (2, 1)

        told = rig.penstock("run", "local", "--kind", "incremental")
        assert "skipped 3 unchanged pages" in told.stdout

        # New code: from what was stored, without what the site would have to send again.
        (rig.folder / "steps.py").write_text(STEPS.format(version="v2", isolation=isolation))
        site.take()
        assert run(rig, "incremental")["counts"]["updated"] == 3
        assert site.take()[1] == {}
        assert versions(rig) == {"v2"}
        assert run(rig, "incremental")["counts"]["pages_unchanged"] == 3

        assert run(rig, "full")["counts"]["pages_unchanged"] == 0
        assert site.take()[1] == {"/a": 1, "/b": 1, "/c": 1}
        rig.assert_sound()


@pytest.mark.parametrize("isolation", ["", ', isolation="process"'])
def test_probe_says_whether_it_would_work_and_changes_nothing(
    tmp_path: Path, site: ChangingSite, isolation: str
) -> None:
    with a_rig(tmp_path, site, isolation) as rig:
        report = run(rig, "probe")
        assert (report["kind"], report["state"], report["end_reason"]) == (
            "probe",
            "completed",
            "ok",
        )
        assert site.take()[0] == {"/sitemap.xml": 1, "/a": 1}
        assert rig.store.records.of("page") == []

        told = rig.penstock("run", "local", "--kind", "probe")
        assert told.returncode == 0
        assert "(probe): ok" in told.stdout

        (rig.folder / "steps.py").write_text(
            STEPS.format(version="v1", isolation=isolation).replace('("text", ', '("none", ')
        )
        assert run(rig, "probe", code=3)["end_reason"] == "degraded: nothing came out"

        site.is_down = True
        report = run(rig, "probe", code=4)
        assert report["end_reason"].startswith("failed: FetchError: status 410")
        assert rig.store.records.of("page") == []


def test_source_that_fails_again_and_again_runs_probes_until_it_is_well(
    tmp_path: Path, site: ChangingSite
) -> None:
    with a_rig(tmp_path, site, degrade_after=2) as rig:
        site.is_down = True
        for _ in range(2):
            run(rig, "full", code=4)

        refused = rig.penstock("run", "local")
        assert refused.returncode == 7
        assert "local is degraded: 2 runs in a row failed" in refused.stderr
        assert "penstock run local --kind probe" in refused.stderr
        assert "Traceback" not in refused.stderr
        every = rig.penstock("run", "--all")
        assert (every.returncode, "left out: local is degraded" in every.stderr) == (7, True)
        assert "no source can have a run of kind full now" in every.stderr
        again = (("retry", "2", "--failed"), ("quarantine", "release", "--all", "--yes"))
        for act in again:
            refused = rig.penstock(*act)
            assert (refused.returncode, refused.stdout) == (7, "")
            assert "penstock resume local takes it for healthy" in refused.stderr
        assert "penstock resume local" in rig.penstock("explain", "--run", "2").stdout
        assert "degraded since" in rig.penstock("status").stdout
        assert "probes only" in rig.penstock("sources").stdout
        [row] = json.loads(rig.penstock("sources", "--json").stdout)
        assert row["bad_runs"] == 2
        assert row["degraded_at"].startswith("20")

        run(rig, "probe", code=4)
        site.is_down = False
        run(rig, "probe")
        assert rig.penstock("run", "local", "--kind", "incremental").returncode == 7
        run(rig, "probe")
        assert run(rig, "incremental")["counts"]["inserted"] == 3

        kinds = [event.kind for event in rig.events("source.degraded", "source.recovered")]
        assert kinds == ["source.degraded", "source.recovered"]


def test_operator_resumes_a_degraded_source(tmp_path: Path, site: ChangingSite) -> None:
    with a_rig(tmp_path, site, degrade_after=1) as rig:
        site.is_down = True
        run(rig, "full", code=4)
        resumed = rig.penstock("resume", "local", "--reason", "they are back")
        assert (resumed.returncode, "local is resumed" in resumed.stdout) == (0, True)
        [event] = rig.events("source.recovered")
        assert event.detail == "they are back"
        assert event.actor
        site.is_down = False
        assert run(rig, "full")["state"] == "completed"


def test_kinds_with_commands_of_their_own_are_pointed_to(
    tmp_path: Path, site: ChangingSite
) -> None:
    with a_rig(tmp_path, site) as rig:
        for kind in ("backfill", "replay"):
            told = rig.penstock("run", "local", "--kind", kind)
            assert told.returncode == 2
            assert f"penstock {kind}" in told.stderr
        told = rig.penstock("run", "local", "--kind", "incremantal")
        assert told.returncode == 2
        assert "'incremental'" in told.stderr


def test_all_of_it_on_a_server(tmp_path: Path, site: ChangingSite, database: str) -> None:
    with a_rig(tmp_path, site, store=database, degrade_after=1, good_probes=1) as rig:
        assert run(rig, "incremental")["counts"]["inserted"] == 3
        site.page("/c", "three, changed")
        counts = run(rig, "incremental")["counts"]
        assert (counts["pages_unchanged"], counts["updated"]) == (2, 1)
        (rig.folder / "steps.py").write_text(STEPS.format(version="v2", isolation=""))
        site.take()
        assert run(rig, "incremental")["counts"]["updated"] == 3
        assert site.take()[1] == {}
        site.is_down = True
        run(rig, "full", code=4)
        assert rig.penstock("run", "local").returncode == 7
        site.is_down = False
        assert run(rig, "probe")["end_reason"] == "ok"
        assert run(rig, "incremental")["counts"]["pages_unchanged"] == 3
        assert rig.penstock("db", "check").returncode == 0


def test_killed_workers_leave_every_page_known_or_to_be_done_again(tmp_path: Path) -> None:
    pages = 60
    with (
        counting_site() as counting,
        Rig(tmp_path, {"local": source_of(counting, pages, page_ms=30)}) as rig,
    ):
        going = rig.start("run", "local", "--kind", "incremental")
        for seen in (10, 30):
            until(lambda: rig.store.runs.newest(limit=1), "the run is there", process=going)
            rig.wait_for_pages(1, seen, going)
            worker = until(lambda: rig.worker_pid(going), "a worker lives", process=going)
            kill(worker)
        assert going.wait(120) == 0, rig.output(going)
        rig.assert_sound()

        before = counting.counts()
        counts = run(rig, "incremental")["counts"]
        assert (counts["pages"], counts["pages_unchanged"]) == (pages, pages)
        # The site can't say what changed, so each page was asked for once, and saved no second time.
        asked = counting.counts() - before
        assert {path: count for path, count in asked.items() if path.startswith("/page/")} == {
            f"/page/{number}": 1 for number in range(pages)
        }
        rig.assert_records({f"/page/{number}" for number in range(pages)})
