"""A project whose snapshots are in a bucket, through the real command in real processes."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from penstock.snapshots import SegmentPlace
from tests.journeys import rig as rigs
from tests.journeys.holding import (
    HOLDING,
    forget_held,
    held,
    holding_source,
    let_go,
    wait_until_held,
)
from tests.journeys.rig import CountingSite, Rig, counting_site, kill, source_of, until
from tests.snapshots.homes import SUFFIX, BucketHome
from tests.snapshots.s3 import KEY_ID, SECRET, Wire, environment

PAGES = 300


@pytest.fixture(scope="module")
def site() -> Iterator[CountingSite]:
    with counting_site() as found:
        yield found


@pytest.fixture(autouse=True)
def _environment(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(wire.port).items():
        monkeypatch.setitem(rigs.ENVIRONMENT, name, value)


def keep_in(rig: Rig, where: str) -> None:
    file = rig.folder / "penstock.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text()), "snapshots": where}))


def assert_whole(rig: Rig, pages: int) -> None:
    rig.assert_sound()
    rig.assert_records({f"/page/{number}" for number in range(pages)})
    assert [job.id for job in rig.jobs() if job.tries or job.deaths] == []


def test_a_site_is_ingested_and_every_page_of_it_is_in_the_bucket(
    tmp_path: Path, site: CountingSite, bucket: BucketHome
) -> None:
    with Rig(tmp_path, {"shop": source_of(site, PAGES, limits={"concurrency": 16})}) as rig:
        keep_in(rig, bucket.setting)
        [run_id] = rig.enqueue("shop")
        process = rig.start("up", "--until-idle")
        assert process.wait(timeout=120) == 0, rig.output(process)
        assert rig.run(run_id).state == "completed"
        assert_whole(rig, PAGES)
        assert not (tmp_path / "snapshots").exists()
        reader, segments = bucket.open("reader"), set()
        for job in rig.jobs(JobState.SUCCEEDED, stage="extract"):
            row = rig.store.snapshots.of(job.id, job.key)
            assert row is not None
            segments.add(row.segment)
            capture = reader.read(SegmentPlace(row.hash, row.segment, row.offset, row.length))
            assert capture.url == job.key
        assert {f"{segment}{SUFFIX}" for segment in segments} <= set(bucket.files())
        assert KEY_ID not in rig.output(process)


def test_an_attempt_after_a_death_reads_its_page_from_the_bucket(
    tmp_path: Path, site: CountingSite, bucket: BucketHome
) -> None:
    with Rig(tmp_path, {"shop": holding_source(4, site=site.url)}, HOLDING) as rig:
        keep_in(rig, bucket.setting)
        asked = site.counts()
        [run_id] = rig.enqueue("shop")
        process = rig.start("up", "--until-idle")
        wait_until_held(rig, 4)
        until(lambda: pages_on_record(rig, site) == 4, "the pages are on record")
        victim = rig.worker_pid(process)
        assert victim is not None
        forget_held(rig)
        kill(victim)
        wait_until_held(rig, 4)
        let_go(rig)
        assert process.wait(timeout=120) == 0, rig.output(process)
        assert rig.run(run_id).state == "completed"
        assert {row.data["seen"] for row in rig.store.records.of("page")} == {"snapshot"}
        again = site.counts()
        assert [again[f"/page/{n}"] - asked[f"/page/{n}"] for n in range(4)] == [1, 1, 1, 1]
        rig.assert_sound()


def test_a_page_that_a_lost_host_has_stored_is_read_by_another(
    tmp_path: Path, site: CountingSite, bucket: BucketHome, database: str
) -> None:
    source = holding_source(4, site=site.url)
    with Rig(tmp_path, {"shop": source}, HOLDING, store=database) as rig:
        keep_in(rig, bucket.setting)
        asked = site.counts()
        [run_id] = rig.enqueue("shop")
        lost = rig.start("up")
        wait_until_held(rig, 4)
        until(lambda: pages_on_record(rig, site) == 4, "the pages are on record")
        other = rig.start("up", "--until-idle")
        until(lambda: rig.worker_pid(other), "the other host works")
        forget_held(rig)
        for pid in [lost.pid, *rig.worker_pids(lost)]:
            kill(pid)
        lost.wait()
        until(lambda: len(held(rig)) == 4, "the other host has the pages", within_s=60)
        let_go(rig)
        assert other.wait(timeout=120) == 0, rig.output(other)
        assert rig.run(run_id).state == "completed"
        assert {row.data["seen"] for row in rig.store.records.of("page")} == {"snapshot"}
        again = site.counts()
        assert [again[f"/page/{n}"] - asked[f"/page/{n}"] for n in range(4)] == [1, 1, 1, 1]
        rig.assert_sound()


def pages_on_record(rig: Rig, site: CountingSite) -> int:
    return sum(
        rig.store.snapshots.of(job.id, f"{site.url}/page/{job.key}") is not None
        for job in rig.jobs(stage="hold")
    )


def test_an_object_store_that_goes_away_is_waited_for(
    tmp_path: Path, site: CountingSite, bucket: BucketHome, wire: Wire
) -> None:
    source = source_of(site, PAGES, page_ms=20, limits={"concurrency": 8})
    with Rig(tmp_path, {"shop": source}) as rig:
        keep_in(rig, bucket.setting)
        [run_id] = rig.enqueue("shop")
        process = rig.start("up", "--until-idle")
        rig.wait_for_pages(run_id, 20, process)
        wire.cut()
        until(lambda: "can't write snapshots" in rig.output(process), "it is said", process=process)
        assert process.poll() is None, rig.output(process)
        wire.mend()
        assert process.wait(timeout=120) == 0, rig.output(process)
        assert rig.run(run_id).state == "completed"
        assert_whole(rig, PAGES)
        assert rig.output(process).count("can't write snapshots") == 1
        assert "Traceback" not in rig.output(process)
        assert SECRET not in rig.output(process)


def test_it_can_be_stopped_while_the_object_store_is_away(
    tmp_path: Path, site: CountingSite, bucket: BucketHome, wire: Wire
) -> None:
    source = source_of(site, PAGES, page_ms=20, limits={"concurrency": 8})
    with Rig(tmp_path, {"shop": source}, worker={"grace": "1s"}) as rig:
        keep_in(rig, bucket.setting)
        [run_id] = rig.enqueue("shop")
        process = rig.start("up")
        rig.wait_for_pages(run_id, 20, process)
        wire.cut()
        until(lambda: "can't write snapshots" in rig.output(process), "it is said", process=process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0, rig.output(process)
        assert "Traceback" not in rig.output(process)
        wire.mend()
        process = rig.start("up", "--until-idle")
        assert process.wait(timeout=120) == 0, rig.output(process)
        assert_whole(rig, PAGES)


def test_a_bucket_that_does_not_exist_is_said_at_once(
    tmp_path: Path, site: CountingSite, wire: Wire
) -> None:
    with Rig(tmp_path, {"shop": source_of(site, 3)}) as rig:
        keep_in(rig, "s3://no-such-bucket/snapshots")
        done = rig.penstock("run", "shop")
        assert done.returncode == 5
        assert "there is no such bucket" in done.stderr
        assert "penstock.yaml (snapshots)" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_place_of_an_unknown_kind_is_refused(tmp_path: Path, site: CountingSite) -> None:
    with Rig(tmp_path, {"shop": source_of(site, 3)}) as rig:
        keep_in(rig, "ftp://host/folder")
        done = rig.penstock("run", "shop")
        assert done.returncode == 2
        assert "snapshots: must be a folder, file:///FOLDER, s3://" in done.stderr
