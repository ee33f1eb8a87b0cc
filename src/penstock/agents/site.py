"""A site: the source that reads it, what is known of it, and what its pages answer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.agents.learn.learn import Sample
from penstock.agents.learn.page import site_of
from penstock.agents.moments import written_at
from penstock.agents.schema import CONTENTS, SiteSchema, read_schema
from penstock.connectors.graphs import connector_of
from penstock.connectors.web import Web
from penstock.http.failures import FetchError
from penstock.jobs.failures import Permanent

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

# The connectors that read sites; both are of the class Web.
READS = ("web", "headless")
SCHEMAS = "site_schemas"
AT_ONCE = 4
# What agents learn, judge and decide by; the rest of a schema says what came of it.
BASIS = (*CONTENTS, "version", "candidate", "pollution_notes", "schema_proposals", "decisions")
HTML = ("text/html", "application/xhtml+xml", "")
P = TypeVar("P", bound=msgspec.Struct)


class Site:
    """The site that a step's source reads."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.web = _web_of(ctx)
        self._read: dict[str, Any] | None = None
        self.domain = site_of(self._address())
        self.collection = self.web.settings.collection or ctx.source.key

    def params(self, kind: type[P]) -> P:
        """The params of the source that this agent knows; what others may know is left alone."""
        try:
            return msgspec.convert(self.ctx.params, kind, strict=False)
        except msgspec.ValidationError as error:
            raise Permanent(f"params of {self.ctx.source.key}: {error}") from None

    async def schema(self) -> SiteSchema | None:
        """What is known of the site; None if nobody has learned it yet."""
        self._read = found = await record(self.ctx, SCHEMAS, self.domain)
        if found is None:
            return None
        try:
            return read_schema(found)
        except msgspec.ValidationError as error:
            raise Permanent(
                f"the schema of {self.domain} can't be read: {error}; it is in the collection "
                f"{SCHEMAS}: have the mapper learn the site again, with force"
            ) from None

    def save(self, **fields: Any) -> None:
        """Set these fields of the schema; the others stay as they are, whoever wrote them meanwhile.

        They were made of the schema as this attempt has read it. Where a person or another agent has changed
        that meanwhile, nothing is saved, and the attempt starts over.
        """
        known = self._read
        based_on = None if known is None else {name: known.get(name) for name in BASIS}
        data = msgspec.to_builtins({"domain": self.domain, **fields})
        self.ctx.save(SCHEMAS, key=self.domain, data=data, merge="merge", based_on=based_on)

    def note_reader(self, source: str) -> None:
        """Set who extracts records by the schema, whatever it has become."""
        data = {"domain": self.domain, "extracted_by": source}
        self.ctx.save(SCHEMAS, key=self.domain, data=data, merge="merge")

    def now(self) -> str:
        return written_at(self.ctx.now())

    async def pages(self, urls: Collection[str]) -> dict[str, Sample]:
        """Pages by address, several at once; without those that are not there, or that are no HTML."""
        found = await self._fetched(urls)
        return {
            url: Sample(url, each.text) for url, each in found.items() if each.content_type in HTML
        }

    async def images(self, urls: Collection[str]) -> dict[str, bytes]:
        """What is at these addresses of images, several at once; without those that are not there."""
        found = await self._fetched(urls)
        return {url: each.body for url, each in found.items()}

    async def _fetched(self, urls: Collection[str]) -> dict[str, Response]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(url: str) -> Response | None:
            async with turns:
                return await self._answer(url)

        tasks = [asyncio.ensure_future(one(url)) for url in urls]
        try:
            answers = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return {url: each for url, each in zip(urls, answers, strict=True) if each is not None}

    async def _answer(self, url: str) -> Response | None:
        try:
            return await self.ctx.fetch(url, missing="fail")
        except FetchError as error:
            if error.kind in ("permanent", "data"):
                return None
            raise

    def _address(self) -> str:
        keys = self.web.settings
        named = self.ctx.params.get("site_url")
        first = [*filter(None, (keys.url, keys.sitemap)), *keys.urls]
        return named if isinstance(named, str) and named else first[0]


def _web_of(ctx: Context) -> Web:
    """The connector of the source, which hands over whole pages."""
    found = connector_of(ctx.source.pipeline.partition("|")[0], ctx.source)
    if not isinstance(found, Web):
        raise Permanent(f"source {ctx.source.key} needs connector: {READS[0]}")
    return type(found)(msgspec.structs.replace(found.settings, html=True), found.place)


async def record(ctx: Context, collection: str, key: str) -> dict[str, Any] | None:
    """The data of one record; None if there is none."""
    # The greatest text before the key: what comes after it begins with the key.
    before = key[:-1] + chr(ord(key[-1]) - 1) + "\U0010ffff" if key else ""
    for row in await ctx.in_progress.services.records(collection, before, 1):
        if row["key"] == key and isinstance(row["data"], dict):
            return row["data"]
    return None
