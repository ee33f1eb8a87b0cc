"""Pages: what is known of each page of a source, so that an incremental run can leave it alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from penstock.jobs.effects import Effects
from penstock.jobs.effects.pages import KnownPage
from penstock.jobs.job import Owned
from penstock.store.database import Database, bounded_text, to_json
from penstock.store.noun import Noun
from penstock.store.replayed_pages import StagedPage, stage_pages
from penstock.store.rows import SnapshotRow

# As long as an address may be in a key of either database.
URL_BYTES = 2000

# A page's source and address.
PageKey = tuple[int, str]
FIRST: PageKey = (0, "")


class PageRow(msgspec.Struct, frozen=True):
    """A page as its site announced it last, and as it was when it was extracted last.

    `done_parts` says of how many pages it was one that were extracted together.
    """

    announced: str
    announced_run_id: int | None
    done_announced: str
    done_hash: str | None
    done_version: str | None
    done_run_id: int | None
    done_at: float | None
    done_parts: int = 1
    snapshot: SnapshotRow | None = None


class Pages(Noun):
    """The verbs of pages."""

    def get(self, source_id: int, url: str) -> PageRow | None:
        """What is known of a page; the snapshot is missing once retention has dropped it."""
        key = bounded_text(url, URL_BYTES)
        found = self._db.json("page_facts", source_id=source_id, url=key)
        return None if found is None else msgspec.convert(found, PageRow)

    def known(self, source_id: int, urls: Sequence[str]) -> dict[str, KnownPage]:
        """What is known of these pages, by the addresses that were asked for."""
        keys = {bounded_text(url, URL_BYTES): url for url in urls}
        found = self._db.rows("known_pages", source_id=source_id, urls=to_json(sorted(keys)))
        return {keys[row[0]]: KnownPage(*row) for row in found}

    def after(self, source_id: int, url: str, limit: int) -> list[KnownPage]:
        """The next pages of a source after this address."""
        rows = self._db.rows("pages_after", source_id=source_id, url=url, limit=limit)
        return [KnownPage(*row) for row in rows]

    def forget(
        self, unseen_for_s: float, after: PageKey = FIRST, limit: int = 2000
    ) -> PageKey | None:
        """Of the next pages after this one, forget those that no run has met for so long.

        Answers with the last one it has looked at, to go on after; None when there is no more. There is
        no index by time: every run that meets a page would have to write it, too.
        """
        before = self._db.now() - unseen_for_s
        found = self._db.rows("next_pages", source_id=after[0], url=after[1], limit=limit)
        if not found:
            return None
        old = [(source_id, url) for source_id, url, at in found if at < before]
        if old:
            with self._db.writing():
                self._db.do("drop_pages_if_old", pages=to_json(old), before=before)
        last: PageKey = (found[-1][0], found[-1][1])
        return last


class _Page:
    """All that one transaction says of one page."""

    __slots__ = ("announced", "done", "is_undone", "run_id")

    def __init__(self) -> None:
        self.run_id: int | None = None
        self.announced: str | None = None
        self.done: tuple[object, ...] = (None, None, None, None, None, 0)
        self.is_undone = 0


def note_pages(
    db: Database,
    now: float,
    visits: Sequence[tuple[Owned, Effects]],
    failed_job_ids: Sequence[int],
) -> None:
    """Write what attempts heard and made of pages: one statement, a row for each page, in their order.

    What a job that failed was made from is not done with, whichever attempt extracted it: it is not to
    be skipped for being as it was.
    """
    noted: dict[tuple[int, str], _Page] = defaultdict(_Page)
    staged: list[StagedPage] = []
    for job, effects in visits:
        for each in effects.announced:
            page = noted[job.source_id, bounded_text(each.url, URL_BYTES)]
            is_told_twice = page.announced is not None and page.announced != each.changed
            page.run_id, page.announced = job.run_id, "" if is_told_twice else each.changed
        for done in effects.extracted:
            if done.is_staged:
                url = bounded_text(done.url, URL_BYTES)
                staged.append((job.run_id, url, job.id, done.hash, done.parts))
                continue
            page = noted[job.source_id, bounded_text(done.url, URL_BYTES)]
            about = (done.hash, done.snapshot, done.version, done.at)
            page.run_id, page.done = job.run_id, (*about, done.parts, int(done.is_same))
    if failed_job_ids:
        for source_id, url in db.rows("pages_of_items", ids=to_json(sorted(failed_job_ids))):
            noted[source_id, bounded_text(url, URL_BYTES)].is_undone = 1
    if staged:
        stage_pages(db, staged)
    gone = sorted(
        {(job.source_id, bounded_text(url, URL_BYTES)) for job, each in visits for url in each.gone}
    )
    if gone:
        db.do("drop_pages", pages=to_json(gone))
    if noted:
        rows = [
            (*key, page.run_id, page.announced, *page.done, page.is_undone)
            for key, page in sorted(noted.items())
        ]
        db.do("note_pages", now=now, pages=to_json(rows))
