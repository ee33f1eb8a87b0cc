"""The pages of a replay: once what was made of them is committed, they are done with that version.

Without it, the next incremental run would extract every unchanged page again, for nothing. What an attempt of
a replay has extracted is noted beside what it staged, and counts only when all of that is in the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from penstock.jobs.run import RunState
from penstock.store.database import Database, to_json

PAGE = 2000

# A replay, an address, the job that extracted it, its content's hash, and of how many pages it is one.
StagedPage = tuple[int, str, int, str, int]


class _Replay(msgspec.Struct, frozen=True):
    source_id: int
    state: RunState
    pipeline_version: str
    failed: int


class _Spoilt(msgspec.Struct, frozen=True):
    """What is not done with: the jobs of which something failed, and addresses. `failed` of it are known."""

    failed: int = 0
    jobs: list[int] = []
    urls: list[str] = []


class _Left(msgspec.Struct, frozen=True):
    """What a commit has left alone. `has_mixed`: a record that several pages may have made."""

    urls: list[str]
    has_mixed: bool | int


class _Extracted(msgspec.Struct, frozen=True, array_like=True):
    """A page as the jobs of a replay have extracted it; its hashes differ where they saw it differently."""

    url: str
    least_hash: str
    greatest_hash: str
    parts: int
    jobs: list[int]


def stage_pages(db: Database, pages: Sequence[StagedPage]) -> None:
    db.do("stage_pages", pages=to_json(sorted(pages)))


def mark_pages(db: Database, run_id: int) -> None:
    """Pages that are still as they were replayed, and of which all is in the records, are done with.

    In batches, each a transaction. To do it again changes nothing.
    """
    replay = db.decoded("replay_of_pages", _Replay, run_id=run_id)
    left = db.decoded("left_on_stage", _Left, run_id=run_id)
    spoilt = db.decoded("spoilt_in_replay", _Spoilt, run_id=run_id) if replay.failed else _Spoilt()
    # Of a cancelled replay nobody knows what is missing, nor of one whose jobs retention has dropped.
    if replay.state is RunState.CANCELLED or left.has_mixed or spoilt.failed != replay.failed:
        return
    bad_jobs, bad_urls = set(spoilt.jobs), {*spoilt.urls, *left.urls}
    for pages in _pages(db, run_id):
        done = [
            (page.url, page.least_hash, page.parts)
            for page in pages
            if page.least_hash == page.greatest_hash
            and page.url not in bad_urls
            and bad_jobs.isdisjoint(page.jobs)
        ]
        if done:
            with db.writing():
                db.do(
                    "mark_pages", source_id=replay.source_id, run_id=run_id,
                    version=replay.pipeline_version, pages=to_json(done),
                )  # fmt: skip


def _pages(db: Database, run_id: int) -> Iterator[list[_Extracted]]:
    after = ""
    while page := db.decoded(
        "staged_pages", list[_Extracted], run_id=run_id, after_url=after, limit=PAGE
    ):
        yield page
        after = page[-1].url


def forget_pages(db: Database, run_id: int) -> None:
    """In batches, each a transaction."""
    while True:
        with db.writing():
            if not db.do("drop_staged_pages", run_id=run_id, limit=PAGE):
                return
