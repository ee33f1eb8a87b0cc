"""The connector `files`: the conformance suite, and what is a folder's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.connectors.files import connector, file_reader
from penstock.connectors.files.walk import Symlinks
from penstock.testing import VirtualClock
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place, Trial
from tests.connectors.folder_place import FolderPlace

watched: list[FolderPlace] = []


class Watched(FolderPlace):
    """A folder that learns when one of its files is read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        watched[:] = [self]


class TestFiles(ConnectorSuite):
    place = Watched

    @pytest.fixture(autouse=True)
    def _watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def read_file(root: Path, path: str, most: int, symlinks: Symlinks) -> bytes:
            body = file_reader.read_file(root, path, most, symlinks)
            watched[0].on_read()
            return body

        monkeypatch.setattr(connector, "read_file", read_file)


@pytest.mark.torture
class TestManyFiles(TestFiles):
    many = 25_000
    writes = ALL_WRITES


def trial_of(folder: Path, **keys: object) -> Trial:
    class Chosen(FolderPlace):
        def keys(self) -> dict[str, object]:
            return {**super().keys(), **keys}

    place: Place = Chosen(folder)
    return Trial(folder, place)


def write(trial: Trial, name: str, text: str | bytes = "text") -> Path:
    file = trial.folder / "files" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_include_exclude_ignore_files_and_hidden_ones_choose_what_is_read(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, include=["*.md", "/reports/**"], exclude=["drafts/"], hidden=False)
    for name in ("a.md", "b.txt", "drafts/c.md", "reports/d.csv", ".hidden.md", ".git/e.md"):
        write(trial, name)
    write(trial, "old/f.md")
    write(trial, "old/keep.md")
    write(trial, "old/.gitignore", "*.md\n!keep.md\n")
    trial.run()
    assert set(trial.documents()) == {"a.md", "reports/d.csv", "old/keep.md"}


def test_links_are_followed_only_as_far_as_the_source_says(tmp_path: Path) -> None:
    for policy, found in (
        ("skip", {"a.txt"}),
        ("inside", {"a.txt", "in.txt"}),
        ("follow", {"a.txt", "in.txt", "out.txt", "elsewhere/b.txt"}),
    ):
        folder = tmp_path / policy
        (folder / "outside").mkdir(parents=True)
        (folder / "outside" / "b.txt").write_text("b")
        trial = trial_of(folder, symlinks=policy)
        root = write(trial, "a.txt").parent
        (root / "in.txt").symlink_to(root / "a.txt")
        (root / "out.txt").symlink_to(folder / "outside" / "b.txt")
        (root / "elsewhere").symlink_to(folder / "outside")
        (root / "loop").symlink_to(root)
        trial.run()
        assert (policy, set(trial.documents())) == (policy, found)


def test_unchanged_files_do_not_even_become_jobs(tmp_path: Path) -> None:
    trial = trial_of(tmp_path)
    for number in range(20):
        write(trial, f"{number}.txt")
    assert len(trial.jobs(trial.run())) == 21
    assert len(trial.jobs(trial.run())) == 1
    assert len(trial.jobs(trial.run("full"))) == 21


def test_a_file_that_was_changed_just_now_is_looked_at_again(tmp_path: Path) -> None:
    """Within one tick of the file system's clock, a second change could not be told from the first."""
    trial = trial_of(tmp_path)
    changed_at = write(trial, "a.txt").stat().st_mtime
    trial.clock = VirtualClock(changed_at + 0.5)
    trial.run()
    assert len(trial.jobs(trial.run())) == 2
    trial.clock.advance(10)
    trial.run()
    assert len(trial.jobs(trial.run())) == 1


def test_a_renamed_file_is_recognised_by_its_content(tmp_path: Path) -> None:
    trial = trial_of(tmp_path)
    old = write(trial, "old name.txt", "the same content")
    write(trial, "other.txt", "other")
    trial.run()
    old.rename(old.with_name("new name.txt"))
    trial.run()
    records = trial.records()
    assert records["new name.txt"][0]["moved_from"] == "old name.txt"
    assert records["old name.txt"][0] == {
        "key": "old name.txt",
        "deleted": True,
        "moved_to": "new name.txt",
    }


def test_an_empty_or_missing_folder_deletes_nothing(tmp_path: Path) -> None:
    trial = trial_of(tmp_path)
    file = write(trial, "a.txt")
    trial.run()
    file.unlink()
    empty = trial.run()
    [job] = trial.jobs(empty)
    assert (empty.state, job.kind) == ("failed", "data")
    assert "Nothing was deleted" in str(job.error)
    file.parent.rmdir()
    missing = trial.run()
    [job] = trial.jobs(missing)
    assert (missing.state, job.kind, job.error) == (
        "failed",
        "permanent",
        "Permanent: there is no folder ./files",
    )
    assert set(trial.documents()) == {"a.txt"}


def test_no_name_is_too_strange_and_no_two_have_the_same_key(tmp_path: Path) -> None:
    trial = trial_of(tmp_path)
    root = write(trial, "a%FF.txt", "percent").parent
    (Path(os.fsdecode(os.fsencode(root) + b"/a\xff.txt"))).write_text("byte")
    (root / "tab\tand\nline.txt").write_text("control")
    (root / "é.txt").write_text("accent")
    trial.run()
    texts = {key: document["text"] for key, document in trial.documents().items()}
    assert texts == {
        "a%25FF.txt": "percent",
        "a%FF.txt": "byte",
        "tab%09and%0Aline.txt": "control",
        "é.txt": "accent",
    }


def test_pipes_and_large_files_are_left_alone(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, max_bytes="1KB")
    root = write(trial, "large.txt", "x" * 2_000).parent
    write(trial, "small.txt")
    os.mkfifo(root / "pipe.txt")
    run = trial.run()
    assert run.state == "completed"
    assert set(trial.documents()) == {"small.txt"}


def test_a_file_that_changes_while_it_is_read_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = trial_of(tmp_path)
    file = write(trial, "log.txt", "first")
    grown = [0]
    fstat = os.fstat

    def growing(descriptor: int) -> os.stat_result:
        found = fstat(descriptor)
        if found.st_ino == file.stat().st_ino and grown[0] < 6:
            grown[0] += 1
            with file.open("a") as log:
                log.write("more")
        return found

    monkeypatch.setattr(os, "fstat", growing)
    run = trial.run()
    assert (run.state, run.retried) == ("completed", 1)
    assert trial.documents()["log.txt"]["text"] == file.read_text()


def test_the_steps_of_a_pipeline_get_what_the_connector_reads(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "from penstock import Pipeline\n"
        'words = Pipeline("words")\n'
        '@words.step(after="read")\n'
        "async def count(document, ctx):\n"
        '    ctx.save("words", key=document["key"], data={"n": len(document["text"].split())})\n'
    )
    trial = trial_of(tmp_path, pipeline="steps:words")
    write(trial, "a.txt", "three little words")
    assert trial.run().state == "completed"
    with trial.project() as project:
        assert project.records.get("words", "a.txt").data == {"n": 3}
    assert trial.records() == {}
