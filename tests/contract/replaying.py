"""A shop whose pages were fetched once, and replays of that run, one attempt at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.app.replay_service import commit, seal
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Extracted, Save
from penstock.jobs.job import Claimed, NewJob
from penstock.jobs.replay import REPLAY_STAGE, replay_plan
from penstock.jobs.run import RunKind, RunOptions
from penstock.store.replays import Committed, StagedChange
from penstock.store.snapshots import Kept
from tests.contract.scenes import SITE, World, a_job, done, quarantined

Data = Mapping[str, Any]


def url_of(page: str) -> str:
    return f"https://acme.com/{page}"


def a_staged(
    key: str,
    data: Any,
    snapshot: int | None = None,
    score: float | None = None,
    merge: Any = "replace",
) -> Save:
    text = msgspec.json.encode(data, order="sorted")
    return Save("product", key, text, score, merge, snapshot, is_staged=True)


class Shop:
    """Each page gives one record, whose key is the page's name unless it is said otherwise."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.store = world.store
        self._snapshots = 1000
        self._runs = 0

    def run(self, pages: Data, **keys: str) -> int:
        """A run that fetches these pages and saves what is in them."""
        self.world.clock.advance(100)
        self._runs += 1
        run_id = self.world.start(key=f"run {self._runs}")
        root = self._claimed(run_id)[0]
        self.world.turn("w", done(root, children=[a_job(page, {"page": page}) for page in pages]))
        for job in self._claimed(run_id):
            self._snapshots += 1
            save = Save(
                "product", keys.get(job.key, job.key),
                msgspec.json.encode(pages[job.key], order="sorted"), None, "replace", self._snapshots,
            )  # fmt: skip
            page = Extracted(
                url_of(job.key),
                f"h{self._snapshots}",
                self._snapshots,
                self.world.clock.now(),
                "v1",
            )
            end = done(job, effects=Effects(saves=[save], extracted=[page]))
            self.store.turn("w", [end], Capacity(0), {}, [self._kept(job)])
        assert self.world.run(run_id).is_ended
        return run_id

    def _kept(self, job: Claimed) -> Kept:
        number = self._snapshots
        where = (f"h{number}", "segment", number, 1)
        return Kept(
            number, job.id, job.run_id, url_of(job.key), 200, {}, self.world.clock.now(), *where
        )

    def _claimed(self, run_id: int) -> list[Claimed]:
        claimed = self.world.claim()
        assert {job.run_id for job in claimed} == {run_id}
        return claimed

    def start(self, of_run_id: int) -> tuple[int, dict[str, Claimed]]:
        """A replay whose pages are brought and claimed."""
        self.world.clock.advance(100)
        self._runs += 1
        run_id, _ = self.store.runs.start(
            self.world.source(), RunKind.REPLAY, replay_plan(SITE), "v2",
            key=f"replay {self._runs}", actor="ops",
            options=RunOptions(is_staged=True), of_run_id=of_run_id,
        )  # fmt: skip
        [bringing] = self._claimed(run_id)
        assert bringing.stage == REPLAY_STAGE
        jobs = self.store.replays.jobs(of_run_id, "extract", None)
        children = [NewJob("extract", j.key, j.item.encode(), 5, j.snapshot) for j in jobs]
        self.world.turn("w", done(bringing, children=children))
        return run_id, {job.key: job for job in self._claimed(run_id)}

    def replay(
        self, of_run_id: int, pages: Data, failing: tuple[str, ...] = (), **keys: str
    ) -> int:
        """Replay a run: these pages give these records, the others none."""
        run_id, jobs = self.start(of_run_id)
        for page, job in jobs.items():
            saves = (
                [a_staged(keys.get(page, page), pages[page], job.snapshot)] if page in pages else []
            )
            extracted = Extracted(url_of(page), f"h{job.snapshot}", job.snapshot, is_staged=True)
            effects = Effects(saves=saves, extracted=[extracted])
            end = quarantined(job) if page in failing else done(job, effects=effects)
            self.world.turn("w", end)
        assert self.world.run(run_id).is_ended
        return run_id

    def versions(self) -> dict[str, tuple[str | None, int | None]]:
        """With which version each page was done, and in which run."""
        source_id = self.world.source()
        found = {page: self.store.pages.get(source_id, url_of(page)) for page in ("p1", "p2", "p3")}
        return {page: (row.done_version, row.done_run_id) for page, row in found.items() if row}

    def changes(self, run_id: int) -> list[StagedChange]:
        seal(self.store, run_id)
        found: list[StagedChange] = []
        while page := self.store.replays.staged_changes(
            run_id, found[-1].where if found else ("", ""), 2
        ):
            found += page
        return found

    def kinds(self, run_id: int) -> dict[str, tuple[str, str]]:
        return {change.key: (change.kind, change.obstacle) for change in self.changes(run_id)}

    def commit(self, run_id: int, *, is_forced: bool = False) -> Committed:
        return commit(self.store, run_id, is_forced=is_forced, actor="ops", reason="because")

    def records(self) -> dict[str, Any]:
        return {row.key: row.data for row in self.store.records.of("product")}

    def history(self, key: str) -> list[tuple[int, int, Any, bool]]:
        rows = self.store.records.versions("product", key)
        return [(row.version, row.run, row.data, row.is_removed) for row in rows]
