"""The conformance suite: what every connector has to promise, tried on a place that the test can change.

    class FolderPlace(Place): ...            # how to put, change and remove an item, and the source's keys

    class TestFolders(ConnectorSuite):       # pytest collects its tests
        place = FolderPlace

Each test runs the real engine, store and snapshots on virtual time. Two promises are tried in a short form:
the worker dies at the first writes of a run only, and memory is compared with few items. The long form dies
at every write until a run ends without a death, also among changes, and compares memory at 25,000 and
100,000 items:

    @pytest.mark.torture
    class TestManyFolders(TestFolders):
        many, writes = 25_000, ALL_WRITES
"""

from __future__ import annotations

import json
import multiprocessing
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from penstock.app import Project
from penstock.clock import SystemClock
from penstock.connectors import Connector
from penstock.http.browser.browsers import Browsers
from penstock.http.network import Network, RawResponse, Request
from penstock.settings import load_settings
from penstock.settings.connector import find_connector
from penstock.store.jobs import JobFilter
from penstock.store.rows import JobRow, RunRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, answer

SOURCE = "place"
COLLECTION = "documents"
ALL_WRITES = 10_000
MOST_TRACED = 1_000
# What SQLite holds of the file at most, with two connections.
CACHES = 72_000_000
# Names and texts that break readers. A place that can't hold one leaves it out.
HOSTILE = {
    "empty": "",
    "quotes '\"`$(id)": "x",
    "line\nbreak": "y",
    "../../etc/passwd": "z",
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "deep" * 40: "[" * 5_000,
    "zero": "a\0b\x1b[31m\u202e",
    "rtl \u202e name": "\ud7ff" * 100,
    "formula": "=cmd|'/c calc'!A1",
    "emoji 🦭": "🦭" * 1_000,
}


class Killed(BaseException):
    """The worker died here."""


class Place(ABC):
    """What a connector is to read in a test. Items have names of the test's own."""

    connector: ClassVar[str]
    # What the source has besides the keys of its connector.
    about: ClassVar[Mapping[str, Any]] = {"fetch": {"allow_private": True, "robots": False}}
    # Keys of records that are the place's own, and no item's: the page that has the links.
    own: ClassVar[frozenset[str]] = frozenset()
    # Whether items that are gone become tombstones although the connector's listings say nothing of them.
    is_swept: ClassVar[bool] = False
    # What must be found nowhere after a run, if the keys hold a secret: it comes from ${SECRET}.
    secret: ClassVar[str] = "s3cr3t-of-the-place"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts: dict[str, str] = {}
        self.requests: list[tuple[float, str]] = []
        # What the next requests are answered with, instead of what is there.
        self.answers: list[RawResponse] = []
        self.is_away = False
        # Called when something is read: the place changes meanwhile.
        self.on_read: Callable[[], None] = lambda: None

    @abstractmethod
    def keys(self) -> dict[str, Any]:
        """The keys of the source."""

    @abstractmethod
    def put(self, name: str, text: str) -> bool:
        """Add an item or change it; False if the place can't hold such a name or text."""

    @abstractmethod
    def remove(self, name: str) -> None: ...

    @abstractmethod
    def key(self, name: str) -> str:
        """The key of the item's record."""

    @abstractmethod
    def lock(self) -> bool:
        """Refuse whoever comes, for want of credentials; False if that can't happen here."""

    def store(self) -> str:
        """Where the project stores, if not in a file of its folder: the URL of an empty database."""
        return ""

    def take_away(self) -> None:
        """The whole place is gone."""
        self.is_away = True

    def page(self, request: Request) -> RawResponse:
        """What a server of this place answers."""
        return answer("", status=404)

    def browsers(self, clock: VirtualClock) -> Browsers | None:
        """Those that draw the pages of this place, if it has to be seen in one."""
        return None

    def network(self, clock: VirtualClock) -> Network:
        async def script(request: Request) -> RawResponse:
            if self.is_away:
                raise AssertionError(f"the network was asked for {request.url}")
            self.requests.append((clock.now(), request.url))
            if self.answers:
                return self.answers.pop(0)
            found = self.page(request)
            self.on_read()
            return found

        return ScriptedNetwork(script)


class Trial:
    """A project with one source, on virtual time."""

    def __init__(self, folder: Path, place: Place, limits: Mapping[str, Any] | None = None) -> None:
        self.folder, self.place = folder, place
        store = place.store()
        # A server has a clock of its own: time begins with it.
        self.clock = VirtualClock(SystemClock().now()) if store else VirtualClock()
        self._seed = 0
        self.has_died = False
        keys = {
            "connector": place.connector,
            "collection": COLLECTION,
            **place.about,
            **place.keys(),
            **({} if limits is None else {"limits": limits}),
        }
        about = {"project": "trial", **({"store": store} if store else {})}
        text = json.dumps({**about, "sources": {SOURCE: keys}}, indent=1)
        (folder / "penstock.yaml").write_text(text, encoding="utf-8")

    @contextmanager
    def project(self) -> Iterator[Project]:
        environ = {"SECRET": self.place.secret}
        with Project(load_settings(self.folder, environ=environ), self.clock) as project:
            yield project

    def run(self, kind: str | None = None, *, dies_at: int | None = None) -> RunRow:
        """One run to its end. With `dies_at`, the worker dies at that point, and another goes on.

        `has_died` says whether the run came so far.
        """
        with self.project() as project:
            run_id = project.run(SOURCE, kind)
        self.has_died = False
        if dies_at is not None:
            with self.project() as project:
                _die_at(project, dies_at)
                try:
                    self.work(project)
                except Killed:
                    self.has_died = True
        with self.project() as project:
            for worker in project.connection.workers.all():
                project.connection.workers.bury(worker.id, "it died")
            self.work(project)
            return project.require_run(run_id)

    def work(self, project: Project) -> None:
        self._seed += 1
        network = self.place.network(self.clock)
        browsers = self.place.browsers(self.clock)
        with Simulation(
            project, network, seed=self._seed, clock=self.clock, browsers=browsers
        ) as simulation:
            simulation.run()

    def records(self) -> dict[str, tuple[Any, int]]:
        """The records by key, each with its version."""
        with self.project() as project:
            found: dict[str, tuple[Any, int]] = {}
            after = ""
            while rows := project.connection.records.of(COLLECTION, after, 1000):
                found.update((row.key, (row.data, row.version)) for row in rows)
                after = rows[-1].key
            return found

    def documents(self) -> dict[str, Any]:
        """Those that are there: without tombstones."""
        return {key: data for key, (data, _) in self.records().items() if not data.get("deleted")}

    def jobs(self, run: RunRow) -> list[JobRow]:
        with self.project() as project:
            return project.connection.jobs.find(JobFilter(run_id=run.id, limit=100_000))

    def items_read(self, run: RunRow) -> list[str]:
        jobs = self.jobs(run)
        return [job.key for job in jobs if job.stage == "read" and job.state == "succeeded"]


def _die_at(project: Project, point: int) -> None:
    """Die at a write. Each has two points: before it is durable (odd), and before anybody hears of it."""
    store, write = project.connection, (point + 1) // 2
    turn, seen = store.turn, [0]

    def dying(worker: str, ends: Sequence[Any], *rest: Any, **about: Any) -> Any:
        seen[0] += bool(ends)
        if seen[0] == write and point % 2:
            raise Killed
        answered = turn(worker, ends, *rest, **about)
        if seen[0] == write:
            raise Killed
        return answered

    store.turn = dying  # type: ignore[method-assign]


class ConnectorSuite:
    """The promises of every connector. Subclass it as `Test…` and name the place."""

    place: ClassVar[type[Place]]
    # Items of the test of memory: so many, and four times as many.
    many: ClassVar[int] = 100
    # Bytes that are held of each item by design, such as the names that links are resolved by.
    held: ClassVar[int] = 0
    # How long the place asks to wait. A place on a server has the server's clock, so it is real time there.
    throttle_s: ClassVar[int] = 120
    # At so many writes of a run the worker dies, at most.
    writes: ClassVar[int] = 8

    def start(
        self,
        folder: Path,
        names: Sequence[str] = ("one", "two", "three"),
        limits: Mapping[str, Any] | None = None,
    ) -> Trial:
        place = self.place(folder)
        for name in names:
            assert place.put(name, f"the text of {name}")
        return Trial(folder, place, limits)

    @property
    def sees_deletions(self) -> bool:
        return self.place.is_swept or self.connector.deletions != "never"

    @property
    def connector(self) -> type[Connector[Any]]:
        found: type[Connector[Any]] = find_connector(self.place.connector)
        return found

    def test_it_says_what_it_is(self) -> None:
        found = self.connector
        assert found.name == self.place.connector
        assert found.summary
        assert "\n" not in found.summary
        assert set(found.example()) <= {"url", *found.Settings.__struct_encode_fields__}

    def test_every_item_is_read_once_into_the_documented_shape(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        assert trial.run().state == "completed"
        records = trial.records()
        for name in ("one", "two", "three"):
            document, version = records[trial.place.key(name)]
            assert f"the text of {name}" in document["text"]
            assert {"key", "kind", "title", "text", "meta", "links", "fingerprint"} <= set(document)
            assert (document["key"], version) == (trial.place.key(name), 1)

    def test_unchanged_items_are_not_read_again(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        trial.run()
        before = trial.records()
        again = trial.run()
        assert again.state == "completed"
        assert trial.items_read(again) == []
        assert trial.records() == before

    def test_a_changed_item_becomes_a_new_version_and_the_others_stay(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        trial.run()
        before = trial.records()
        trial.place.put("two", "another text of two")
        trial.place.put("four", "the text of four")
        trial.run()
        after = trial.records()
        # Where an item can't change, another one is in its place, and the old one is a tombstone.
        changed = {key for key in trial.documents() if after[key] != before.get(key)}
        changed -= trial.place.own
        assert changed == {trial.place.key("two"), trial.place.key("four")}
        assert "another text" in after[trial.place.key("two")][0]["text"]

    def test_a_deleted_item_becomes_a_tombstone_once_and_can_come_back(
        self, tmp_path: Path
    ) -> None:
        if not self.sees_deletions:
            return
        trial = self.start(tmp_path)
        trial.run()
        trial.place.remove("two")
        assert trial.run().state == "completed"
        key = trial.place.key("two")
        assert trial.records()[key][0]["deleted"] is True
        version = trial.records()[key][1]
        third = trial.run()
        assert trial.records()[key][1] == version
        assert key not in {job.key for job in trial.jobs(third)}
        trial.place.put("two", "the text of two")
        trial.run()
        assert "the text of two" in trial.documents()[trial.place.key("two")]["text"]

    def test_a_deletion_that_was_undone_is_seen_again(self, tmp_path: Path) -> None:
        if self.connector.deletions == "never":
            return
        trial = self.start(tmp_path)
        trial.run()
        trial.place.remove("two")
        second = trial.run()
        key = trial.place.key("two")
        with trial.project() as project:
            project.runs.undo(second.id)
        assert key in trial.documents()
        trial.run()
        assert key not in trial.documents()

    def test_a_worker_that_dies_at_any_write_leaves_no_gap_and_no_duplicate(
        self, tmp_path: Path
    ) -> None:
        whole = self.start(_folder(tmp_path, "whole"))
        whole.run()
        for point in range(1, 2 * self.writes + 1):
            # One at a time: what ends together is written together, and would die together.
            trial = self.start(_folder(tmp_path, f"dies-{point}"), limits={"concurrency": 1})
            run = trial.run(dies_at=point)
            assert (point, run.state) == (point, "completed")
            assert (point, trial.records()) == (point, whole.records())
            if not trial.has_died:
                return
        assert self.writes != ALL_WRITES

    def test_a_worker_that_dies_while_changes_are_read_leaves_them_all_once(
        self, tmp_path: Path
    ) -> None:
        """In the short form it dies once only."""
        whole = self._changed(_folder(tmp_path, "whole"))
        whole.run()
        for point in range(1, 2 * self.writes + 1) if self.writes == ALL_WRITES else (3,):
            trial = self._changed(_folder(tmp_path, f"dies-{point}"))
            run = trial.run(dies_at=point)
            assert (point, run.state) == (point, "completed")
            assert (point, trial.records()) == (point, whole.records())
            if not trial.has_died:
                return
        assert self.writes != ALL_WRITES

    def _changed(self, folder: Path) -> Trial:
        """What was read, and has changed since: an item more, one that is another, one less."""
        trial = self.start(folder, limits={"concurrency": 1})
        trial.run()
        trial.place.put("two", "another text of two")
        trial.place.put("four", "the text of four")
        if self.sees_deletions:
            trial.place.remove("three")
        return trial

    def test_nothing_is_missed_while_the_place_changes(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        changes = iter([("four", "the text of four"), ("one", "one anew"), ("five", "five")])

        def change() -> None:
            found = next(changes, None)
            if found is not None:
                trial.place.put(*found)

        trial.place.on_read = change
        trial.run()
        for left in changes:
            trial.place.put(*left)
        trial.place.on_read = lambda: None
        trial.run()
        documents = trial.documents()
        for name, text in trial.place.texts.items():
            assert text in documents[trial.place.key(name)]["text"]

    def test_refused_credentials_are_tried_once(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        if not trial.place.lock():
            return
        run = trial.run()
        assert run.state in ("failed", "partial")
        failed = [job for job in trial.jobs(run) if job.state == "quarantined"]
        assert failed
        assert {(job.kind, job.tries) for job in failed} == {("auth", 1)}

    def test_a_throttle_is_honoured_and_costs_nothing(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        trial.place.answers = [
            answer("", status=429, headers={"Retry-After": str(self.throttle_s)})
        ]
        run = trial.run()
        if not trial.place.requests:
            return  # it asks nobody
        assert run.state == "completed"
        assert trial.place.requests[1][0] - trial.place.requests[0][0] >= self.throttle_s
        assert len(trial.documents().keys() - trial.place.own) == 3

    def test_hostile_names_and_contents_harm_nothing(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        held = [name for name, text in HOSTILE.items() if trial.place.put(name, text)]
        run = trial.run()
        assert run.state in ("completed", "partial")
        documents = trial.documents()
        failed = {job.key for job in trial.jobs(run) if job.state == "quarantined"}
        for name in ("one", "two", "three"):
            assert trial.place.key(name) in documents
        for name in held:
            key = trial.place.key(name)
            assert key in documents or key in failed, name
        assert not (tmp_path.parent / "passwd").exists()

    def test_memory_stays_flat(self, tmp_path: Path) -> None:
        few = self._peak(_folder(tmp_path, "few"), self.many)
        more = self._peak(_folder(tmp_path, "more"), 4 * self.many)
        # Four times as many items: what is held is a batch, whatever their number.
        caches = 0 if self.many <= MOST_TRACED else CACHES
        allowed = max(2 * few + 4_000_000, few + caches) + 3 * self.many * self.held
        assert more < allowed, (few, more)

    def _peak(self, folder: Path, items: int) -> int:
        """What a run of so many items takes at most, in bytes."""
        trial = self.start(folder, [f"item {number}" for number in range(items)])
        # Tracing is exact, and takes ten times as long.
        peak = _traced(trial) if self.many <= MOST_TRACED else _resident(trial)
        assert len(trial.records().keys() - trial.place.own) == items
        return peak

    def test_secrets_are_nowhere(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        trial.run()
        trial.place.lock()
        trial.run("full")
        secret = trial.place.secret.encode()
        for file in tmp_path.rglob("*"):
            if file.is_file() and file.suffix != ".env":
                assert secret not in file.read_bytes(), file

    def test_a_replay_needs_neither_the_place_nor_the_network(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        run = trial.run()
        trial.place.take_away()
        with trial.project() as project:
            replay = project.replays.start(run.id)
            trial.work(project)
            assert project.require_run(replay.run.id).state == "completed"
            diff = project.replays.diff(replay.run.id)
            assert (diff.totals.added, diff.totals.changed, diff.totals.removed) == (0, 0, 0)
            assert diff.totals.same == 3 + len(trial.place.own)

    def test_a_run_can_be_undone(self, tmp_path: Path) -> None:
        trial = self.start(tmp_path)
        trial.run()
        before = {key: data for key, (data, _) in trial.records().items()}
        trial.place.put("two", "another text of two")
        second = trial.run()
        with trial.project() as project:
            project.runs.undo(second.id)
        assert {key: data for key, (data, _) in trial.records().items()} == before


def _traced(trial: Trial) -> int:
    tracemalloc.start()
    try:
        assert trial.run().state == "completed"
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _resident(trial: Trial) -> int:
    """By how much a process of its own grows in the run."""
    here, there = multiprocessing.Pipe(duplex=False)

    def measure() -> None:
        before = _status("VmRSS")
        state = trial.run().state
        there.send((state, _status("VmHWM") - before))

    process = multiprocessing.get_context("fork").Process(target=measure)
    process.start()
    there.close()
    try:
        state, grown = here.recv()
    finally:
        process.join()
    assert state == "completed"
    return int(grown)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    [line] = [line for line in lines if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def _folder(above: Path, name: str) -> Path:
    made = above / name
    made.mkdir()
    return made
