"""The connector `dump`: which rows vanished from a file, and when nothing is deleted."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from penstock.connectors.dump import parts, vanished
from penstock.testing import journal
from tests.connectors.test_dump import Filed, RowsPlace, made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of few rows, so that a small file has many."""
    monkeypatch.setattr(parts, "MOST_ROWS", 7)


def table(ids: list[int], more: str = "") -> bytes:
    return ("id,name\n" + "".join(f"{n},name {n}\n" for n in ids) + more).encode()


def change(trial: Filed, body: bytes) -> None:
    trial.file.write_bytes(body)
    os.utime(trial.file, ns=(0, next(RowsPlace._ticks)))


@pytest.fixture
def little_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vanished rows are looked for in many jobs, and the keys of the file in several turns."""
    monkeypatch.setattr(vanished, "PAGE", 5)
    monkeypatch.setattr(vanished, "MOST_LOOKED_AT", 10)
    monkeypatch.setattr(vanished, "MOST_GONE", 3)
    monkeypatch.setattr(vanished, "MOST_KEYS", 20)


@pytest.mark.usefixtures("small", "little_by_little")
def test_rows_that_vanished_become_tombstones_wherever_a_worker_dies(tmp_path: Path) -> None:
    kept = [n for n in range(50) if n % 3]
    for point in (None, *range(1, 36, 6)):
        trial = Filed(made(tmp_path, str(point)), "rows.csv", table(list(range(50))), key="id")
        trial.run()
        change(trial, table(kept))
        assert trial.run(dies_at=point).state == "completed"
        assert set(trial.rows()) == {str(n) for n in kept}
        gone = [key for key, (data, _) in trial.records().items() if data.get("deleted")]
        assert set(gone) == {str(n) for n in range(0, 50, 3)}
        before = trial.records()
        change(trial, table([*kept, 51]))
        trial.run()
        after = trial.records()
        assert {key for key in after if after[key] != before.get(key)} == {"51", "rows.csv"}


def test_nothing_is_deleted_for_rows_that_could_not_be_read(tmp_path: Path) -> None:
    trial = Filed(tmp_path, "rows.csv", table([1, 2, 3]), key="id")
    trial.run()
    for body, why in (
        (table([1], "2,two,too many\n"), "1 row rejected"),
        (b"id,name\n", "no rows"),
    ):
        change(trial, body)
        trial.run()
        assert set(trial.rows()) == {"1", "2", "3"}
        with trial.project() as project:
            notes = "\n".join(event.detail for event in journal(project))
        assert f"rows.csv: {why}, so that nothing of what was read before is deleted" in notes


def tar_of(body: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, part in (("a.csv", body), ("b.csv", b"id,name\n9,nine\n")):
            about = tarfile.TarInfo(name)
            about.size = len(part)
            tar.addfile(about, io.BytesIO(part))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "whole", "cut", "other_cut"),
    [
        ("rows.csv", table([1, 2, 9]), table([1, 2])[:-1], table([1])[:-1]),
        # Cut exactly where the first file in it ends.
        (
            "rows.tar",
            tar_of(table([1, 2])),
            tar_of(table([1, 2]))[:1024],
            tar_of(table([1]))[:1024],
        ),
    ],
)
def test_nothing_is_deleted_for_a_file_that_was_cut_short(
    name: str, whole: bytes, cut: bytes, other_cut: bytes, tmp_path: Path
) -> None:
    trial = Filed(tmp_path, name, whole, key="id")
    trial.run()
    assert set(trial.rows()) == {"1", "2", "9"}
    change(trial, cut)
    assert trial.run().state == "completed"
    assert set(trial.rows()) == {"1", "2", "9"}
    with trial.project() as project:
        assert "has no end, as it had before: it may be cut short" in "\n".join(
            event.detail for event in journal(project)
        )
    # A file that never has such an end is whole without it.
    change(trial, other_cut)
    trial.run()
    assert set(trial.rows()) == {"1"}


def test_a_record_that_another_source_wrote_is_not_deleted(tmp_path: Path) -> None:
    trial = Filed(tmp_path, "rows.csv", table([1, 2]), key="id")
    trial.run()
    settings = json.loads((tmp_path / "penstock.yaml").read_text())
    settings["sources"]["other"] = {**settings["sources"]["place"], "path": "./other.csv"}
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    (tmp_path / "other.csv").write_bytes(table([8, 9]))
    for body in (table([8, 9]), table([9])):
        (tmp_path / "other.csv").write_bytes(body)
        os.utime(tmp_path / "other.csv", ns=(0, next(RowsPlace._ticks)))
        with trial.project() as project:
            run_id = project.run("other")
            trial.work(project)
            assert project.require_run(run_id).state == "completed"
    assert set(trial.rows()) == {"1", "2", "9"}


def test_a_row_that_moved_to_another_file_of_the_source_stays(tmp_path: Path) -> None:
    trial = Filed(tmp_path, "a.csv", table([1, 2]), path="./*.csv", key="id")
    (tmp_path / "b.csv").write_bytes(table([3]))
    os.utime(tmp_path / "b.csv", ns=(0, 1_700_000_000_000_000_000))
    trial.run()
    change(trial, table([1]))
    (tmp_path / "b.csv").write_bytes(table([2, 3]))
    os.utime(tmp_path / "b.csv", ns=(0, next(RowsPlace._ticks)))
    trial.run()
    assert set(trial.rows()) == {"1", "2", "3"}
    (tmp_path / "b.csv").write_bytes(table([3]))
    os.utime(tmp_path / "b.csv", ns=(0, next(RowsPlace._ticks)))
    trial.run()
    assert set(trial.rows()) == {"1", "3"}
