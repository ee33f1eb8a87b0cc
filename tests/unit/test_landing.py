"""Which files are meant, and when they have landed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.engine.leader.files import Blind, Files
from penstock.http.folder import scan
from penstock.project import Project
from penstock.schedules.landed_files import LONGEST_BURST, MOST_AT_ONCE, LandedFiles
from penstock.settings.pattern import pattern_of
from penstock.testing import VirtualClock

STEPS = """
from penstock import Pipeline

plain = Pipeline("plain")


@plain.step(unit="run")
async def look(ctx):
    pass
"""


@pytest.mark.parametrize(
    ("text", "root", "meant", "not_meant"),
    [
        ("./inbox/**/*.json", "inbox", ["a.json", "x/y/a.json"], ["a.csv", ".a.json", ".x/a.json"]),
        ("inbox/*.json", "inbox", ["a.json"], ["x/a.json", "a.json.part"]),
        ("/data/in/day-?/[ab]*.csv", "/data/in", ["day-1/a1.csv"], ["day-10/a.csv", "day-1/c.csv"]),
        ("inbox/[!x]*.csv", "inbox", ["a.csv"], ["x.csv"]),
        ("inbox/list.txt", "inbox", ["list.txt"], ["list_txt", "lists.txt"]),
        ("inbox/**", "inbox", ["a", "b/c/d"], [".hidden"]),
        ("*.json", ".", ["a.json"], ["b/a.json"]),
        ("in/.tmp*", "in", [".tmp1"], ["tmp1"]),
        ("in/a+b(c).txt", "in", ["a+b(c).txt"], ["aab(c).txt"]),
    ],
)
def test_a_pattern_means_these_files(
    text: str, root: str, meant: list[str], not_meant: list[str]
) -> None:
    pattern = pattern_of(text)
    assert pattern.root == root
    assert [path for path in meant if not pattern.holds(path)] == []
    assert [path for path in not_meant if pattern.holds(path)] == []


def test_a_file_lands_when_it_has_not_changed_for_as_long_as_the_debounce() -> None:
    landing = LandedFiles(2.0, {})
    assert landing.look({"a": "1"}, 0.0) == {}
    assert landing.look({"a": "1"}, 1.9) == {}
    assert landing.look({"a": "1"}, 2.0) == {"a": "1"}


def test_a_file_that_is_being_written_is_waited_for() -> None:
    landing = LandedFiles(2.0, {})
    for second in range(15):
        assert landing.look({"a": str(second)}, float(second)) == {}
    assert landing.look({"a": "14"}, 15.9) == {}
    assert landing.look({"a": "14"}, 16.0) == {"a": "14"}


def test_a_burst_lands_as_one() -> None:
    landing = LandedFiles(2.0, {})
    found: dict[str, str] = {}
    for n in range(1000):
        found[f"f{n}"] = "1"
        assert landing.look(found, n * 0.01) == {}
    assert landing.look(found, 11.9) == {}, "the last of them is not at rest"
    assert len(landing.look(found, 12.0)) == 1000


def test_a_burst_without_an_end_does_not_hold_up_what_is_at_rest() -> None:
    landing = LandedFiles(1.0, {})
    found, landed = {"first": "1"}, {}
    for second in range(30):
        found["growing"] = str(second)
        landed = landing.look(found, second * 0.9)
        if landed:
            assert second * 0.9 >= LONGEST_BURST
            break
    assert landed == {"first": "1"}


def test_what_arrives_settles_by_the_second_look_however_late_that_comes() -> None:
    landing = LandedFiles(1.0, {})
    assert not landing.is_settling(0.0)
    landing.look({"a": "1"}, 0.0)
    assert landing.is_settling(1000.0)
    landing.has_landed(landing.look({"a": "1"}, 1000.0))
    assert not landing.is_settling(1000.0)


def test_a_burst_without_an_end_is_not_waited_for() -> None:
    landing = LandedFiles(1.0, {})
    for second in range(LONGEST_BURST + 1):
        assert landing.look({"a": str(second)}, float(second)) == {}
        assert landing.is_settling(float(second)) == (second < LONGEST_BURST)


def test_more_than_a_run_can_be_told_of_lands_in_parts() -> None:
    landing = LandedFiles(1.0, {})
    found = {f"f{n:06}": "1" for n in range(MOST_AT_ONCE + 5)}
    landing.look(found, 0.0)
    first = landing.look(found, 1.0)
    assert len(first) == MOST_AT_ONCE
    landing.has_landed(first)
    assert len(landing.look(found, 2.0)) == 5


def test_what_has_landed_before_lands_again_when_it_has_changed() -> None:
    landing = LandedFiles(1.0, {"a": "1", "b": "1"})
    landing.look({"a": "1", "b": "2"}, 0.0)
    assert landing.look({"a": "1", "b": "2"}, 1.0) == {"b": "2"}
    landing.has_landed({"b": "2"})
    assert landing.look({"a": "1", "b": "2"}, 5.0) == {}
    assert not landing.is_waiting


def test_a_file_that_has_gone_before_it_landed_never_was() -> None:
    landing = LandedFiles(1.0, {})
    landing.look({"a": "1"}, 0.0)
    assert landing.look({}, 1.0) == {}
    assert not landing.is_waiting


# With a folder.


class Inbox:
    """A project that watches a folder, on virtual time, and a hint that can be given."""

    def __init__(self, folder: Path, rescan: str = "60s") -> None:
        self.folder = folder
        self.inbox = folder / "inbox"
        (folder / "steps.py").write_text(STEPS)
        (folder / "penstock.yaml").write_text(
            "sources: {a: {pipeline: 'steps:plain', schedule: {watch: './inbox/**/*.json', "
            f"debounce: 2s, rescan: {rescan}}}}}}}"
        )
        self.clock = VirtualClock()
        self.project = Project.open(folder)
        self.project.clock = self.clock
        self.has_hint = False
        self.looks = 0
        self.files = self.open()

    def open(self) -> Files:
        files = Files(self.project, self.project.connection, lambda root, is_deep: Eye(self))
        files.plan()
        return files

    def write(self, name: str, text: str = "{}") -> None:
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.has_hint = True

    def look(self, after_s: float = 0.0) -> list[list[str]]:
        """The files of each signal that a look brings."""
        self.clock.advance(after_s)
        ids = self.files.look()
        found = [row for row in self.project.connection.signals.after() if row.id in ids]
        return [[Path(path).name for path in row.data["files"]] for row in found]

    def close(self) -> None:
        self.files.close()
        self.project.close()


class Eye:
    is_open = True

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def has_seen(self) -> bool:
        had, self._inbox.has_hint = self._inbox.has_hint, False
        return had

    def close(self) -> None:
        return None


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path)


def test_a_file_that_lands_is_signalled_once(inbox: Inbox) -> None:
    inbox.write("a.json")
    inbox.write("deep/er/b.json")
    inbox.write("c.txt")
    assert inbox.look() == []
    assert inbox.look(2.0) == [["a.json", "b.json"]]
    inbox.has_hint = True
    assert inbox.look(60.0) == []
    assert inbox.look(60.0) == []
    inbox.write("a.json", '{"n": 1}')
    assert inbox.look(1.0) == []
    assert inbox.look(2.0) == [["a.json"]]
    inbox.close()


def test_what_landed_while_nobody_led_lands_later_and_what_was_known_does_not(inbox: Inbox) -> None:
    inbox.write("a.json")
    inbox.look()
    assert inbox.look(2.0) == [["a.json"]]
    inbox.files.close()
    inbox.write("b.json")
    inbox.files = inbox.open()
    inbox.look(100.0)
    assert inbox.look(2.0) == [["b.json"]]
    inbox.close()


def test_a_file_of_which_no_hint_came_is_found_by_the_next_rescan(inbox: Inbox) -> None:
    inbox.write("first.json")
    inbox.look()
    inbox.look(2.0)
    inbox.write("a.json")
    inbox.has_hint = False
    assert inbox.look(50.0) == []
    assert inbox.look(9.0) == []
    inbox.look(1.5)
    assert inbox.look(2.0) == [["a.json"]]
    inbox.close()


def test_without_hints_a_folder_is_not_read_before_the_rescan(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.write("a.json")
    inbox.look()
    inbox.look(2.0)
    looks: list[Path] = []
    monkeypatch.setattr(
        "penstock.engine.leader.files.scan", lambda root, pattern: looks.append(root)
    )
    for _ in range(57):
        inbox.look(1.0)
    assert looks == []
    inbox.look(3.5)
    assert len(looks) == 1
    inbox.close()


def test_a_folder_that_is_not_there_is_waited_for_and_forgets_nothing(inbox: Inbox) -> None:
    inbox.write("a.json")
    inbox.look()
    inbox.look(2.0)
    away = inbox.folder / "away"
    inbox.inbox.rename(away)
    assert inbox.look(61.0) == []
    known = inbox.project.connection.files.landed(inbox.project.source_ids["a"], "main")
    assert list(known) == [str(inbox.inbox / "a.json")]
    away.rename(inbox.inbox)
    assert inbox.look(61.0) == []
    assert inbox.look(2.0) == []
    inbox.close()


def test_no_link_is_followed_out_of_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.json").write_text("{}")
    (inside / "out").symlink_to(outside)
    (inside / "round").symlink_to(inside)
    (inside / "link.json").symlink_to(outside / "secret.json")
    (inside / "a.json").write_text("{}")
    os.mkfifo(inside / "pipe.json")
    found = scan(inside, pattern_of("**/*.json"))
    assert found is not None
    assert [Path(path).name for path in found] == ["a.json"]


def test_who_sees_nothing_looks_all_the_time() -> None:
    eye = Blind()
    assert eye.has_seen()
    assert eye.has_seen()
    assert not eye.is_open
