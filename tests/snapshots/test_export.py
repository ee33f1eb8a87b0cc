"""Exports of records into a bucket, through the real command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.store.sqlite.store import SqliteStore
from tests.contract.scenes import SQLITE, World, a_save
from tests.contract.test_records import save
from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT
from tests.snapshots.homes import BucketHome
from tests.snapshots.s3 import Fault, Wire, environment


@pytest.fixture
def folder(tmp_path: Path, wire: Wire) -> Path:
    (tmp_path / "penstock.yaml").write_text("project: p\n")
    SqliteStore(tmp_path / "penstock.db", SystemClock()).close()
    world = World(SQLITE, tmp_path / "penstock.db")
    save(world, a_save("a", {"n": 1}), a_save("b", {"n": 2}))
    world.close()
    return tmp_path


def surroundings(wire: Wire) -> dict[str, str]:
    return {**ENVIRONMENT, **environment(wire.port)}


def test_export_is_an_object_with_a_manifest_beside_it(
    folder: Path, bucket: BucketHome, wire: Wire
) -> None:
    url = f"{bucket.setting}/out.jsonl"
    command = ("records", "export", "product", "--to", url)

    done = run_command([*command, "--json"], folder, surroundings(wire), 60)

    assert done.returncode == 0, done.stderr
    objects = bucket.files()
    told = json.loads(done.stdout)
    assert told["sha256"] == hashlib.sha256(objects["out.jsonl"]).hexdigest()
    assert json.loads(objects["out.jsonl.manifest.json"])["cursor"] == told["cursor"]
    again = run_command(command, folder, surroundings(wire), 60)
    assert again.returncode == 7
    assert "exists already" in again.stderr
    assert not any((folder / ".penstock" / "exports").iterdir())
    since = ("records", "export", "product", "--to", "changes.jsonl", "--json", "--since")
    more = run_command([*since, f"{url}.manifest.json"], folder, surroundings(wire), 60)
    assert json.loads(more.stdout)["since"] == told["cursor"], more.stderr
    none = run_command([*since, f"{url}.nothing"], folder, surroundings(wire), 60)
    assert (none.returncode, "is no manifest" in none.stderr) == (2, True)


def test_export_that_the_bucket_refuses_is_continued_when_it_is_back(
    folder: Path, bucket: BucketHome, wire: Wire
) -> None:
    url = f"{bucket.setting}/out.jsonl"
    command = ("records", "export", "product", "--to", url)
    wire.faults.append(Fault(status=403, code="AccessDenied", method="PUT"))

    refused = run_command(command, folder, surroundings(wire), 60)
    wire.faults.clear()
    done = run_command(command, folder, surroundings(wire), 60)

    assert refused.returncode == 5
    assert "access denied" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert done.returncode == 0, done.stderr
    assert "continued" in done.stderr
    assert set(bucket.files()) == {"out.jsonl", "out.jsonl.manifest.json"}
