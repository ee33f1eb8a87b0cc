"""The connector `api`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.api import demo
from penstock.connectors.api.answers import decoded, find_records, records_of, refuse_errors
from penstock.connectors.api.documents import content_of, documents_of
from penstock.connectors.api.exchange import Exchange
from penstock.connectors.api.keys import ApiKeys, ApiPagingKeys, ApiSinceKeys
from penstock.connectors.api.paging import NUMBERED, Page, first_at, follow
from penstock.connectors.api.position import Position
from penstock.connectors.api.recognition import completed, described
from penstock.connectors.api.requests import request_of
from penstock.connectors.api.since import PARTITION, cursor_of, known_high, latest, written
from penstock.connectors.contract import Checkpoint, Connector, Document, Item, Sample, Tombstone
from penstock.connectors.jsonpath import JsonPath, compile_path
from penstock.connectors.target import Recognised
from penstock.counting import count
from penstock.http.failures import FetchError
from penstock.jobs.failures import BadData
from penstock.jobs.outcome import Skip, Unchanged
from penstock.pipeline.step import UNBOUNDED

if TYPE_CHECKING:
    from penstock.connectors.target import Target
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

# A larger answer is decoded in a thread.
LARGE = 262_144
# What is behind the last page is not there, for some.
GONE = (404, 410)


class Api(Connector[ApiKeys]):
    """JSON, page by page: a document for each record.

    Each page is a job of its own. A record that the API does not list any more stays, unless a field of it
    says that it was deleted (`deleted`).
    """

    name = "api"
    summary = "a JSON API, page by page: numbers, offsets, cursors, links, GraphQL"
    Settings = ApiKeys
    deletions = "never"
    retry = "provider-safe"
    robots = False

    def bounds(self) -> tuple[int, int]:
        # A chain is as deep as it is long.
        return UNBOUNDED, self.settings.paging.max_pages

    async def discover(self, ctx: Context, cursors: Mapping[str, Any]) -> AsyncIterator[Item]:
        """The first page; the others are found by it."""
        since, start = self.settings.since, Position(at=first_at(self.settings.paging))
        if since is not None:
            was = known_high(cursors.get(PARTITION), since)
            is_all = was is None or ctx.run.kind != "incremental"
            asked = (since.start or "") if is_all or was is None else written(was, since)
            start = Position(at=start.at, since=asked, was=was, began_at=ctx.now())
        yield self._item(ctx, self.settings.paging, start)

    async def read(
        self, ctx: Context, item: Item
    ) -> AsyncIterator[Document | Tombstone | Item | Checkpoint]:
        here = msgspec.convert(item.about, Position)
        paging = self._paging(here)
        try:
            response = await self._exchange.page(ctx, paging, here, item.address)
        except FetchError as error:
            if error.status not in GONE or here.number == 1 or paging.kind not in NUMBERED:
                raise
            for checkpoint in self._ended(here):
                yield checkpoint
            await ctx.commit()
            raise Skip("it is not there: the page before it is the last") from None
        page, here = await self._page(ctx, response, here)
        if not response.is_done:
            for document in self._documents(page):
                yield document
        async for found in self._onward(ctx, page, here):
            yield found
        if response.is_done:
            # What it leads to is durable before it is left alone.
            await ctx.commit()
            raise Unchanged("its content is the same")

    def _documents(self, page: Page) -> Iterator[Document | Tombstone]:
        keys = tuple(map(compile_path, self.settings.key))
        gone = compile_path(self.settings.deleted) if self.settings.deleted else None
        return documents_of(page.records, page.marks, keys, gone, page.records_at)

    async def _onward(
        self, ctx: Context, page: Page, here: Position
    ) -> AsyncIterator[Item | Checkpoint]:
        """Where a page leads to: further pages, or the end of the walk."""
        if self.settings.since is not None:
            here = _counted(page.records, here, self.settings.since)
        try:
            after = self._after(ctx, page, here)
        except BadData:
            # The records of this page are sound, even if it leads nowhere.
            await ctx.commit()
            raise
        if not after and here.number >= here.up_to:
            for checkpoint in self._ended(here):
                yield checkpoint
        most = self.settings.paging.max_pages
        if after and after[-1].number > most:
            ctx.note(f"there are more pages than paging.max_pages, {most:,}; the rest is left out")
        paging = self._paging(after[0]) if after else self.settings.paging
        for position in after:
            if position.number <= most:
                yield self._item(ctx, paging, position)

    @property
    def _exchange(self) -> Exchange:
        return Exchange(self.settings, self.place)

    def _item(self, ctx: Context, paging: ApiPagingKeys, position: Position) -> Item:
        request = request_of(self.settings, ctx.params, paging, position)
        address = self._exchange.address_of(request.address)
        return Item(position.name, address, about=msgspec.to_builtins(position))

    def _paging(self, position: Position) -> ApiPagingKeys:
        if not position.paging:
            return self.settings.paging
        return msgspec.convert(position.paging, ApiPagingKeys)

    async def _page(
        self, ctx: Context, response: Response, here: Position
    ) -> tuple[Page, Position]:
        """The page; with what is to be recognised, if it is the first."""
        large = len(response.body) > LARGE
        answer = await ctx.in_thread(lambda: decoded(response)) if large else decoded(response)
        if self.settings.graphql is not None:
            refuse_errors(answer)
        path = self._records_path(answer, here)
        records = records_of(answer, path)
        page = Page(answer, records, content_of(records), path, response.headers, response.url)
        if here.number > 1:
            return page, here
        paging = completed(self.settings, page)
        if self.settings.paging.kind == "auto" and not response.is_done:
            ctx.note(f"paging: {described(paging)}")
        about = {"paging": msgspec.to_builtins(paging), "records": str(path)}
        return page, msgspec.structs.replace(here, **about)

    def _records_path(self, answer: Any, here: Position) -> JsonPath:
        known = self.settings.records or here.records
        return compile_path(known) if known else find_records(answer)

    def _after(self, ctx: Context, page: Page, here: Position) -> list[Position]:
        return follow(
            self._paging(here),
            page,
            here,
            # A checkpoint moves when all pages are saved, which is known of one after the other.
            side_by_side=self.settings.since is None,
            secrets=self._exchange.query_secrets(ctx),
        )

    def _ended(self, here: Position) -> list[Checkpoint]:
        """The walk is over: the checkpoint moves to the latest change, and not beyond the time it began at.

        What changed meanwhile may be on a page that was read before it did.
        """
        since = self.settings.since
        if since is None or here.high is None:
            return []
        high = here.high if since.format == "number" else min(here.high, here.began_at)
        if here.was is not None and high <= here.was:
            return []
        return [Checkpoint(cursor_of(high, since), PARTITION)]

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """JSON with a list of records in it."""
        response = target.response
        if response is None or "json" not in response.content_type:
            return None
        try:
            answer = decoded(response)
            path = find_records(answer)
            records = records_of(answer, path)
        except BadData:
            return None
        first = records[0] if records else None
        if not isinstance(first, dict):
            return None
        if isinstance(answer, dict) and "jsonfeed.org" in str(answer.get("version", "")):
            return None
        page = Page(answer, records, [], path, response.headers, response.url)
        keys: dict[str, Any] = {"url": target.url}
        if (field := demo.key_field(records)) not in ("", "id"):
            keys["key"] = field
        paging = completed(ApiKeys(url=target.url), page)
        why = f"a JSON API: {count(len(records), 'record')} at {path}; paging: {described(paging)}"
        return Recognised(keys=keys, why=why, name=demo.name_of(response.url), fit=60)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"url": "https://api.example.com/items"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        return demo.write(folder)


def _counted(records: list[Any], here: Position, since: ApiSinceKeys) -> Position:
    """The position with the latest change of all records so far."""
    found = [each for each in (here.high, latest(records, since)) if each is not None]
    return msgspec.structs.replace(here, high=max(found, default=None))
