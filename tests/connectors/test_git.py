"""Files of any git repository, by its protocol or from a folder (connector `github` with `url`)."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.github import GitHub
from penstock.connectors.github.git.kept_trees import KeptTrees, parsed, written
from penstock.connectors.github.git.packs import COMMIT, TREE, name_of
from penstock.testing import RawResponse, Request, answer
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Trial
from tests.connectors.git_server import GitPlace, GitServer
from tests.connectors.github_server import git_name
from tests.connectors.test_github import failure

EMPTY_TREE = name_of(TREE, b"")


class TestFilesByGit(ConnectorSuite):
    place = GitPlace
    many = 20
    writes = 8


@pytest.mark.torture
class TestFilesByGitAtEveryWrite(TestFilesByGit):
    writes = ALL_WRITES


def git_trial(folder: Path, **keys: Any) -> tuple[Trial, GitServer]:
    place = GitPlace(folder)
    place.extra = keys
    return Trial(folder, place), place.server


def test_by_git_an_unchanged_branch_takes_two_requests_and_a_change_brings_no_other_file(
    tmp_path: Path,
) -> None:
    trial, _ = git_trial(tmp_path)
    for number in range(5):
        trial.place.put(f"docs/{number}.md", f"text {number} " * 1000)
    trial.run()
    trial.place.requests.clear()
    run = trial.run()
    assert [job.stage for job in trial.jobs(run)] == ["discover"]
    assert len(trial.place.requests) == 2
    trial.place.put("docs/3.md", "another text")
    trial.place.requests.clear()
    assert trial.items_read(trial.run()) == ["docs/3.md"]
    assert len(trial.place.requests) == 4


def test_by_git_a_server_that_can_not_filter_is_read_too(tmp_path: Path) -> None:
    class Plain(GitPlace):
        can_filter = False

    place = Plain(tmp_path)
    for number in range(20):
        place.put(f"{number % 3}/{number}.txt", f"text {number} " * 500)
    trial = Trial(tmp_path, place)
    assert trial.run().state == "completed"
    assert len(trial.documents()) == 20


@pytest.mark.parametrize("can_filter", [True, False])
def test_by_git_a_change_brings_what_is_new_and_nothing_that_was_there(
    can_filter: bool, tmp_path: Path
) -> None:
    place = GitPlace(tmp_path, can_filter=can_filter)
    rng = random.Random(7)
    for number in range(40):
        place.put(f"docs/{number % 10}/{number}.txt", rng.randbytes(1000).hex())
    trial = Trial(tmp_path, place)
    trial.run()
    before = place.server.sent
    place.put("docs/3/3.txt", "another text")
    place.put("new/one.txt", "the new one")
    assert trial.items_read(trial.run()) == ["docs/3/3.txt", "new/one.txt"]
    # Two blobs, and the trees above them: with all trees it would be twice as much, with all blobs 40,000.
    assert place.server.sent - before < 1600
    assert set(trial.documents()) == set(place.texts)
    # The server leaves out the tree of a folder that only has another name.
    for number in range(5, 40, 10):
        place.put(f"other/{number}.txt", place.texts[f"docs/5/{number}.txt"])
        place.remove(f"docs/5/{number}.txt")
    trial.run()
    assert set(trial.documents()) == set(place.texts)


def test_by_git_trees_that_are_lost_or_damaged_are_asked_for_again(tmp_path: Path) -> None:
    trial, server = git_trial(tmp_path)
    for number in range(5):
        trial.place.put(f"{number}/a.md", f"text {number}")
    trial.run()
    server.forget()
    trial.place.put("3/a.md", "another")
    # The server does not know the commit any more.
    assert trial.items_read(trial.run()) == ["3/a.md"]
    for file in (tmp_path / "snapshots").rglob("*.warc*"):
        file.unlink()
    trial.place.put("4/a.md", "another")
    assert trial.items_read(trial.run()) == ["4/a.md"]
    assert {each["text"] for each in trial.documents().values()} == set(trial.place.texts.values())


def test_by_git_a_server_that_leaves_out_too_much_is_asked_for_everything(tmp_path: Path) -> None:
    class Sparing(GitPlace):
        def page(self, request: Request) -> RawResponse:
            if b"have " in (request.body or b""):
                pack = b"PACK" + bytes((0, 0, 0, 2, 0, 0, 0, 0))
                pack += hashlib.sha1(pack, usedforsecurity=False).digest()
                body = b"000dpackfile\n" + f"{len(pack) + 5:04x}".encode() + b"\x01" + pack
                return answer(body + b"0000")
            return super().page(request)

    trial = Trial(tmp_path, Sparing(tmp_path))
    trial.place.put("a.md", "a")
    trial.run()
    trial.place.put("b.md", "b")
    assert trial.items_read(trial.run()) == ["b.md"]


def test_kept_trees_are_used_only_as_a_whole() -> None:
    objects = {}
    for kind, data in ((TREE, b""), (TREE, b"40000 a\0" + bytes.fromhex(EMPTY_TREE))):
        objects[name_of(kind, data)] = data
    root = list(objects)[-1]
    commit = f"tree {root}\n\n".encode()
    name = name_of(COMMIT, commit)
    objects[name] = commit
    body = written(name, {**objects, "aa" * 20: b"not of this commit"})
    assert parsed(body) == KeptTrees(name, objects)
    for at in range(len(body)):
        assert parsed(body[:at]) == KeptTrees()
        damaged = bytearray(body)
        damaged[at] ^= 1
        assert parsed(bytes(damaged)).commit != name


def test_by_git_links_submodules_and_odd_names_are_left_out(tmp_path: Path) -> None:
    trial, server = git_trial(tmp_path)
    trial.place.put("a.md", "a")
    blob = git_name("blob", b"a").encode()
    server.odd = [
        (b"link", blob, 0o120000),
        (b"module", b"11" * 20, 0o160000),
        (b"up/../../x", blob, 0o100644),
        (b".git/config", blob, 0o100644),
        (b"sub/.GIT", blob, 0o100644),
    ]
    assert trial.run().state == "completed"
    assert set(trial.documents()) == {"a.md"}


def test_by_git_a_branch_is_read_that_is_named(tmp_path: Path) -> None:
    trial, server = git_trial(tmp_path, branch="next")
    trial.place.put("a.md", "of next")
    server.commit()
    (server.path / "refs/heads/main").rename(server.path / "refs/heads/next")
    assert trial.run().state == "completed"
    assert trial.documents()["a.md"]["text"] == "of next"
    other, _ = git_trial(_made(tmp_path / "other"), branch="nowhere")
    other.place.put("a.md", "a")
    run = other.run()
    failed = failure(other, run)
    assert (failed.kind, failed.error) == ("permanent", "Permanent: there is no branch nowhere")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        ("<html>", 200, "data", "not one of a git server"),
        ("001e# service=git-upload-pack\n0000", 200, "permanent", "version 2"),
        ("", 404, "permanent", "there is no git repository at this url"),
        ("000eversion 2\n001dobject-format=sha256\n0000", 200, "permanent", "SHA-256"),
    ],
)
def test_what_is_no_git_server_is_told_in_one_line(
    body: str, status: int, kind: str, words: str, tmp_path: Path
) -> None:
    trial, _ = git_trial(tmp_path)
    trial.place.answers = [answer(body, status=status)]
    run = trial.run()
    failed = failure(trial, run)
    assert (failed.kind, failed.tries) == (kind, 1)
    assert words in failed.error


def test_a_repository_in_a_folder_is_read_as_it_is_committed(tmp_path: Path) -> None:
    sample = GitHub.sample(tmp_path / "demo")

    class LocalPlace(GitPlace):
        def keys(self) -> dict[str, Any]:
            return dict(sample.keys)

    trial = Trial(tmp_path, LocalPlace(tmp_path))
    assert trial.run().state == "completed"
    assert trial.place.requests == []
    texts = {key: document["kind"] for key, document in trial.documents().items()}
    assert texts["README.md"] == "markdown"
    assert trial.items_read(trial.run()) == []
    shutil.rmtree(tmp_path / "demo")
    run = trial.run()
    failed = failure(trial, run)
    assert "there is no git repository at ./demo/repo.git" in failed.error
    assert len(trial.documents()) == 4
