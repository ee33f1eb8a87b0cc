"""Exports of records as files: whole or not there, exact by version, and continued after a kill."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow.parquet
import pytest

from penstock import Project
from penstock.app.record_export import export as exporting
from penstock.app.undo import undo
from penstock.app.views.record_exports import ManifestView
from penstock.errors import AlreadyRunning, PenstockError, Refused, UsageError
from penstock.settings import Settings, SourceSettings
from penstock.store import record_exports
from tests.contract.scenes import World, a_save, done
from tests.contract.test_records import save

SECRET = "hunter2-of-the-project"


@pytest.fixture
def project(world: World, tmp_path: Path) -> Iterator[Project]:
    place = f"sqlite:{world.path}" if isinstance(world.path, Path) else str(world.path)
    sources = {
        "acme.com": SourceSettings("acme.com", "m:p"),
        "diary": SourceSettings("diary", "m:p", private=True),
    }
    settings = Settings(
        tmp_path,
        tmp_path / "penstock.yaml",
        "p",
        place,
        sources=sources,
        secrets=frozenset({SECRET}),
    )
    with Project(settings) as made:
        yield made


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def versions(path: Path) -> dict[str, tuple[int, bool]]:
    return {each["key"]: (each["version"], each["is_removed"]) for each in lines(path)}


def remove(world: World, run_id: int) -> None:
    world.enqueue(run_id)
    world.turn("w", *map(done, world.claim()))
    undo(world.store, run_id, 20, actor="me", reason="")


def test_manifest_says_what_the_file_holds_and_where_the_next_export_begins(
    world: World, project: Project, tmp_path: Path
) -> None:
    save(world, a_save("a", {"n": 1, "name": "ü"}), a_save("b", {"n": None}, score=0.5))
    first = tmp_path / "out" / "first.jsonl"

    told = project.records.export("product", first)

    manifest = json.loads((first.parent / "first.jsonl.manifest.json").read_text())
    assert manifest == told.as_json()
    assert manifest["sha256"] == hashlib.sha256(first.read_bytes()).hexdigest()
    assert manifest["bytes"] == first.stat().st_size
    assert (manifest["records"], manifest["deletions"]) == (2, 0)
    assert [each["key"] for each in lines(first)] == ["a", "b"]
    assert lines(first)[0]["data"] == {"n": 1, "name": "ü"}
    assert {"name": "n", "type": "integer", "nulls": 1} in manifest["columns"]
    assert {"name": "score", "type": "number", "nulls": 1} in manifest["columns"]
    assert manifest["schema"]["required"] == ["n"]

    save(world, a_save("b", {"n": 2}), a_save("c", {"n": 1}))
    second = tmp_path / "second.jsonl"
    project.records.export("product", second, since=f"{first}.manifest.json")

    assert versions(second) == {"b": (2, False), "c": (1, False)}
    again = project.records.export("product", tmp_path / "third.jsonl", since=told.cursor)
    assert (
        again.versions_sha256
        == json.loads(Path(f"{second}.manifest.json").read_text())["versions_sha256"]
    )
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    events = project.journal.list(kind="records.exported").items
    assert [event.detail for event in events][-1] == f"2 records of product to {first}"
    assert len(events) == 3


def test_removed_record_is_exported_as_removed_and_without_its_data(
    world: World, project: Project, tmp_path: Path
) -> None:
    save(world, a_save("kept", {"n": 1}))
    run_id = save(world, a_save("gone", {"n": "private words"}))
    before = project.records.export("product", tmp_path / "before.jsonl")
    remove(world, run_id)

    told = project.records.export("product", tmp_path / "after.jsonl", since=before.cursor)

    [line] = lines(tmp_path / "after.jsonl")
    assert (line["key"], line["is_removed"], line["data"], line["version"]) == (
        "gone",
        True,
        None,
        2,
    )
    assert (told.records, told.deletions) == (0, 1)


def test_export_that_is_cut_short_at_any_sync_is_continued_and_never_half_there(
    world: World, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_exports, "EXPORT_PAGE", 3)
    monkeypatch.setattr(exporting, "PAGES_A_NOTE", 1)
    save(world, *(a_save(f"k{number:02}", {"n": number}) for number in range(10)))
    whole = project.records.export("product", tmp_path / "whole.jsonl")
    fsync, left = os.fsync, [0]

    def failing(descriptor: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(5, "the machine went away")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    for cut_at in range(1, 60):
        target = tmp_path / f"cut-{cut_at}.jsonl"
        left[0] = cut_at
        try:
            project.records.export("product", target)
            break
        except OSError:
            assert not target.exists() or len(lines(target)) == 10
            assert not Path(f"{target}.manifest.json").exists() or target.exists()
        left[0] = 0
        # What is written meanwhile is not a part of what was begun.
        save(world, a_save("k05", {"n": 1000 + cut_at}))
        told = project.records.export("product", target)
        assert told.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()
        keys = [each["key"] for each in lines(target)]
        assert keys == [f"k{number:02}" for number in range(10)]
        later = project.records.export(
            "product", tmp_path / "later.jsonl", since=told.cursor, overwrite=True
        )
        seen = {**versions(target), **versions(tmp_path / "later.jsonl")}
        newest = project.records.export("product", tmp_path / "newest.jsonl", overwrite=True)
        assert seen == versions(tmp_path / "newest.jsonl")
        assert later.records + told.records >= newest.records
    else:
        pytest.fail("the export never ended without a fault")
    assert cut_at > 8
    assert whole.records == 10


def test_every_format_holds_the_same_records(
    world: World, project: Project, tmp_path: Path
) -> None:
    save(
        world,
        a_save(
            "a",
            {"n": 1, "price": 2, "tags": ["x", 1], "ok": True, "key": "own", "Ok": "2"},
            score=0.5,
        ),
        a_save("b", {"n": None, "price": 2.5, "big": 2**70, "name": "=1+1"}),
    )
    run_id = save(world, a_save("c", {"n": 3}))
    remove(world, run_id)
    for form in ("csv", "parquet", "duckdb"):
        project.records.export("product", tmp_path / f"out.{form}")

    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["key"], row["n"], row["price"], row["is_removed"]) for row in table] == [
        ("a", 1, 2.0, False),
        ("b", None, 2.5, False),
        ("c", None, None, True),
    ]
    assert (table[0]["data.key"], json.loads(table[0]["tags"])) == ("own", ["x", 1])
    assert json.loads(table[1]["big"]) == 2**70
    assert table[0]["updated_at"].tzinfo is not None

    connection = duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True)
    rows = connection.execute(
        'SELECT key, n, price, "ok_2", "Ok", is_removed FROM product'
    ).fetchall()
    connection.close()
    assert rows == [
        ("a", 1, 2.0, True, "2", False),
        ("b", None, 2.5, None, None, False),
        ("c", None, None, None, None, True),
    ]
    with open(tmp_path / "out.csv", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [each["key"] for each in cells] == ["a", "b", "c"]
    assert cells[1]["name"] == "'=1+1"
    assert (cells[0]["ok"], cells[1]["ok"], cells[2]["is_removed"]) == ("true", "", "true")


@pytest.mark.parametrize("data", ["text", [1, 2], 5, None, {}, {f"f{n}": n for n in range(1200)}])
def test_data_of_any_shape_is_exported_in_columns(
    world: World, project: Project, tmp_path: Path, data: Any
) -> None:
    save(
        world,
        a_save("a", data),
        a_save("b", {"n": 1}) if isinstance(data, str) else a_save("c", data),
    )

    project.records.export("product", tmp_path / "out.parquet")
    project.records.export("product", tmp_path / "out.csv")

    [row, _] = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    held = row.get("data")
    assert (
        data in ({}, held, held and json.loads(held)) if not isinstance(held, int) else held == data
    )


def test_private_sources_are_left_out_unless_they_are_asked_for(
    world: World, project: Project, tmp_path: Path
) -> None:
    save(world, a_save("open", {"n": 1}))
    save(world, a_save("diary", {"n": 2}), run_id=world.start(source="diary", key="d"))

    told = project.records.export("product", tmp_path / "a.jsonl")
    everything = project.records.export("product", tmp_path / "b.jsonl", include_private=True)

    assert (told.records, told.private_left_out) == (1, 1)
    assert "diary" not in (tmp_path / "a.jsonl").read_text()
    assert (everything.records, everything.private_left_out) == (2, 0)
    assert project.records.to_arrow("product").num_rows == 1
    assert project.records.to_arrow("product", include_private=True).num_rows == 2


def test_secrets_are_masked_in_exports(world: World, project: Project, tmp_path: Path) -> None:
    save(world, a_save("a", {"note": f"token {SECRET}"}))

    project.records.export("product", tmp_path / "a.jsonl")

    assert SECRET not in (tmp_path / "a.jsonl").read_text()
    assert "***" in (tmp_path / "a.jsonl").read_text()


def test_records_come_as_frames(world: World, project: Project) -> None:
    save(world, a_save("a", {"n": 1}), a_save("b", {"n": 2}))

    assert project.records.to_pandas("product")["n"].tolist() == [1, 2]
    assert project.records.to_polars("product").get_column("n").sum() == 3
    assert isinstance(project.records.to_polars("product"), polars.DataFrame)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"to": "x.txt"}, "no_format"),
        ({"to": "x.csv", "format": "xls"}, "no_format"),
        ({"to": "x.csv", "since": "0" * 24}, "no_cursor"),
        ({"to": "x.csv", "since": "nothing.json"}, "no_cursor"),
        ({"to": "x.csv", "run": 99}, "no_run"),
        ({"to": "taken.csv"}, "export_exists"),
        ({"to": ""}, "no_format"),
        ({"to": "", "format": "csv"}, "no_target"),
        ({"to": "ftp://host/x.csv"}, "config"),
        ({"to": "/proc/x.csv"}, "no_target"),
        ({"to": "x.csv", "since": "taken.csv"}, "no_cursor"),
        ({"to": "x.csv", "since": "of another database"}, "no_cursor"),
        ({"to": "s3://bucket", "format": "csv"}, "config"),
    ],
)
def test_wrong_export_is_refused_before_anything_is_written(
    world: World,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    code: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.csv").write_text("mine")
    save(world, a_save("a", {"n": 1}))

    with pytest.raises(PenstockError) as raised:
        project.records.export("product", **asked)

    assert raised.value.code == code
    assert (tmp_path / "taken.csv").read_text() == "mine"
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(("form", "module"), [("parquet", "pyarrow"), ("duckdb", "duckdb")])
def test_missing_library_names_the_extra_that_has_it(
    world: World,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    module: str,
) -> None:
    save(world, a_save("a", {"n": 1}))
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(UsageError, match=f"{module}, which is not installed") as raised:
        project.records.export("product", tmp_path / f"a.{form}")

    assert raised.value.hint == "pip install 'penstock[data]'"


def test_old_worker_at_work_is_refused_because_its_writes_leave_no_trace(
    world: World, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(world, a_save("a", {"n": 1}))
    monkeypatch.setattr(record_exports, "SCHEMA", 10_000)

    project.connection.workers.register("old", "here", 1, "0.1")

    with pytest.raises(Refused, match="older version"):
        project.records.export("product", tmp_path / "a.jsonl")


def test_two_exports_to_one_place_do_not_mix(
    world: World, project: Project, tmp_path: Path
) -> None:
    save(world, a_save("a", {"n": 1}))
    met: list[type[BaseException]] = []

    def meanwhile(_: object) -> ManifestView:
        with pytest.raises(AlreadyRunning) as raised:
            project.records.export("product", tmp_path / "a.jsonl")
        met.append(raised.type)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "_finish", lambda *rest: meanwhile(rest))
        with pytest.raises(KeyboardInterrupt):
            project.records.export("product", tmp_path / "a.jsonl")

    assert met == [AlreadyRunning]
    assert project.records.export("product", tmp_path / "a.jsonl").is_resumed is True
