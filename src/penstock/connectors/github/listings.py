"""The listings of one repository: what is new or changed in it since they were read last."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from penstock.connectors.contract import Checkpoint, Item, Listed
from penstock.connectors.github.addresses import Part
from penstock.connectors.github.keys import GitHubKeys, as_time
from penstock.connectors.github.rest import PER_PAGE, Api, Page, nothing_there
from penstock.connectors.github.rows import Comment, Commit, Compared, Issue, Release
from penstock.http.failures import FetchError
from penstock.jobs.failures import BadData

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

Found = AsyncIterator[Item | Checkpoint | Listed]
# What is written at the same time may be listed a little later.
OVERLAP = timedelta(seconds=60)
_SHA = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Walk:
    """One repository in one run. In an incremental run it begins where the last one ended."""

    ctx: Context
    keys: GitHubKeys
    source: str
    # As the source names it: after it was renamed, its documents keep their keys.
    name: str
    cursors: Mapping[str, Any]

    @property
    def is_incremental(self) -> bool:
        return self.ctx.run.kind == "incremental"

    @property
    def is_whole(self) -> bool:
        """Whether all that there is gets listed, so that what is missing is deleted."""
        return not self.is_incremental and self.keys.since is None

    def api(self) -> Api:
        """For one listing, whose pages are counted."""
        return Api(self.ctx, self.keys.api)

    def part(self, name: str) -> Part:
        return Part(self.source, f"{self.name}/{name}")

    async def issues(self, kinds: frozenset[str], *, with_reviews: bool = False) -> Found:
        """Issues and pull requests: one listing has both. A review changes its pull request, too."""
        parts = {"issue": self.part("issues"), "pull": self.part("pulls")}
        rows = _Updated(self, parts["issue"], "issues", list[Issue])
        async for row in rows.walk():
            kind = "pull" if row.pull_request is not None else "issue"
            if kind in kinds:
                yield parts[kind].item(kind, row.number, row)
            if kind == "pull" and with_reviews:
                yield self.part("reviews of").reviews(self.name, row.number, row.updated_at)
        for found in rows.end([parts[kind] for kind in sorted(kinds)]):
            yield found

    async def comments(self, of: str, kind: str) -> Found:
        """Comments of issues and pull requests (`issues`), or of lines of changes (`pulls`)."""
        part = self.part(f"{kind}s")
        rows = _Updated(self, part, f"{of}/comments", list[Comment])
        async for row in rows.walk():
            yield part.item(kind, row.id, row)
        for found in rows.end([part]):
            yield found

    async def releases(self) -> Found:
        part, api = self.part("releases"), self.api()
        url = api.at(f"repos/{self.name}/releases", per_page=PER_PAGE)
        while url:
            page = await api.page(url, list[Release])
            for row in page.found:
                yield part.item("release", row.id, row)
            url = page.next_url
        yield Listed(part.address)

    async def commits(self) -> Found:
        """Those of the branch: all of them, or those since the head that was read last."""
        part, api = self.part("commits"), self.api()
        try:
            first = await api.page(self._log(api, self.keys.branch), list[Commit])
        except FetchError as error:
            self.ctx.note(f"{part.name}: {nothing_there(error)}")
            return
        before = self.cursors.get(part.name) if self.is_incremental else None
        if not first.found or before == (head := first.found[0].sha):
            return
        async for row in self._new_commits(api, first, before, head):
            yield part.item("commit", row.sha, row)
        yield Checkpoint(head, part.name, ordered=False)
        if self.is_whole:
            yield Listed(part.address)

    def _log(self, api: Api, sha: str | None, page: int = 0) -> str:
        path = f"repos/{self.name}/commits"
        return api.at(path, per_page=PER_PAGE, sha=sha, since=self.keys.since, page=page)

    async def _new_commits(
        self, api: Api, first: Page[list[Commit]], before: object, head: str
    ) -> AsyncIterator[Commit]:
        """By comparison with the head that was read last: also those that a merge brought from long ago."""
        compared = None
        if isinstance(before, str) and _SHA.fullmatch(before):
            compared = await self._compared(api, before, head)
        while compared is not None:
            for row in compared.found.commits:
                yield row
            if not compared.next_url:
                return
            compared = await api.page(compared.next_url, Compared)
        number, page = 1, first
        while True:
            for row in page.found:
                yield row
            if not page.next_url:
                return
            # From the head itself: what is pushed meanwhile does not move the pages.
            number += 1
            page = await api.page(self._log(api, head, number), list[Commit])

    async def _compared(self, api: Api, before: str, head: str) -> Page[Compared] | None:
        url = api.at(f"repos/{self.name}/compare/{before}...{head}", per_page=PER_PAGE)
        try:
            return await api.page(url, Compared)
        except FetchError as error:
            if error.status not in (404, 422):
                raise
            self.ctx.note(f"{self.name}: its history was rewritten, and is read again")
            return None


@dataclass(slots=True)
class _Updated:
    """A listing by the time of the last update, oldest first.

    Each next page begins at the time that the last one ended with, not at a number: what is updated or
    deleted meanwhile moves nothing out of sight. The cursor is the beginning of the last page, which the next
    run therefore asks for by the same address: if nothing is new, GitHub says so and does not count it.
    """

    walk_: Walk
    part: Part
    path: str
    kind: Any
    since: str = ""
    reason: str = ""
    # When each was updated, by number: what is updated while it is listed is met again.
    seen: dict[int, str] = field(default_factory=dict)
    met_again: str = ""

    async def walk(self) -> AsyncIterator[Any]:
        """Each row once, as it was met first."""
        api = self.walk_.api()
        self.since = self._begin()
        url = self._url(api)
        while url:
            try:
                page = await api.page(url, self.kind)
            except FetchError as error:
                self.reason = nothing_there(error)
                return
            for row in page.found:
                if self._is_new(row.number_or_id, row.updated_at):
                    yield row
            url = self._after(api, page)

    def _begin(self) -> str:
        found = self.walk_.cursors.get(self.part.name) if self.walk_.is_incremental else None
        return max(found if isinstance(found, str) else "", self.walk_.keys.since or "")

    def _url(self, api: Api) -> str:
        about: dict[str, object] = {"state": "all"} if self.path == "issues" else {}
        about |= {"sort": "updated", "direction": "asc", "per_page": PER_PAGE, "since": self.since}
        return api.at(f"repos/{self.walk_.name}/{self.path}", **about)

    def _is_new(self, number: int, updated_at: str) -> bool:
        before = self.seen.get(number)
        if before is None:
            self.seen[number] = updated_at
            return True
        if before != updated_at:
            self.met_again = min(self.met_again or updated_at, updated_at)
        return False

    def _after(self, api: Api, page: Page[Any]) -> str:
        if not page.next_url or not page.found:
            return ""
        later = _earlier(page.found[-1].updated_at)
        if later <= self.since:
            return page.next_url  # more than a page within the overlap
        self.since = later
        return self._url(api)

    def end(self, listed: list[Part]) -> list[Checkpoint | Listed]:
        """What is remembered of it, and what was listed to its end."""
        if self.reason:
            self.walk_.ctx.note(f"{self.part.name}: {self.reason}")
            return []
        # What has changed since it was met is read by the next run.
        cursor = min(self.since, self.met_again or self.since)
        found: list[Checkpoint | Listed] = []
        if cursor > max(self._begin(), str(self.walk_.cursors.get(self.part.name) or "")):
            found.append(Checkpoint(cursor, self.part.name))
        return found + [Listed(each.address) for each in listed if self.walk_.is_whole]


def _earlier(text: str) -> str:
    try:
        return as_time(datetime.fromisoformat(text) - OVERLAP)
    except (ValueError, OverflowError):
        raise BadData(f"{text[:40]!r} is no time of GitHub's API", cause="no time") from None
