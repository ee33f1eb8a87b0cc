"""The connector `feed`."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import msgspec

from penstock.connectors.contract import Checkpoint, Connector, Document, Gone, Item, Sample
from penstock.connectors.feed.entries import Entry, read_entries
from penstock.connectors.feed.rhythm import rest_s
from penstock.connectors.files.file_reader import read_file
from penstock.connectors.formats import parse
from penstock.connectors.target import Recognised
from penstock.counting import count
from penstock.http.failures import FetchError
from penstock.http.response import Response
from penstock.jobs.failures import BadData, Permanent
from penstock.pipeline.context import Captured
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import about

if TYPE_CHECKING:
    from penstock.connectors.target import Target
    from penstock.pipeline.context import Context

HTTP = ("http://", "https://")
LARGEST_FILE = 16_000_000
SUFFIXES = (".xml", ".rss", ".atom")
RHYTHM = "rhythm"
_encode = msgspec.json.Encoder(order="deterministic").encode


class FeedKeys(ConnectorKeys, frozen=True, kw_only=True):
    """A feed."""

    url: Annotated[str, about("address of the feed, or a file relative to penstock.yaml")]
    full_text: Annotated[
        bool, about("fetch the page of each entry, and save its main text instead of the summary")
    ] = False
    rhythm: Annotated[
        bool,
        about(
            "ask no sooner than the feed says (`ttl`, `Cache-Control`), or, if it says nothing, than its "
            "entries come; a run of kind `full` always asks"
        ),
    ] = True


class Feed(Connector[FeedKeys]):
    """RSS, Atom or JSON Feed: a document for each entry. An entry that leaves the feed stays a record."""

    name = "feed"
    summary = "a feed: RSS, Atom or JSON Feed, with enclosures and full text"
    Settings = FeedKeys
    deletions = "never"

    async def discover(
        self, ctx: Context, cursors: Mapping[str, Any]
    ) -> AsyncIterator[Item | Checkpoint]:
        """The feed itself, unless there can't be anything new in it."""
        due_at = float((cursors.get(RHYTHM) or {}).get("due_at", 0.0))
        if self.settings.rhythm and ctx.run.kind == "incremental" and ctx.now() < due_at:
            moment = datetime.fromtimestamp(due_at, UTC)
            ctx.note(f"not asked before {moment:%Y-%m-%d %H:%M} UTC, by the rhythm of the feed")
            return
        yield Item(self.settings.url, self._address)

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document | Item | Checkpoint]:
        if "entry" in item.about:
            yield await self._full(ctx, msgspec.convert(item.about["entry"], Entry))
            return
        response = await self._fetch(ctx)
        found = await ctx.in_thread(lambda: read_entries(response.body, response.url))
        if found.broken:
            ctx.note(f"{count(found.broken, 'entry', 'entries')} of the feed can't be read")
        if found.cut:
            words = (
                f"{count(found.cut, 'entry', 'entries')} of the feed left out: it has more than "
                f"{count(len(found.entries), 'entry', 'entries')}"
            )
            ctx.note(words)
            ctx.reject(words, code="feed_cut")
        for entry in found.entries:
            if self.settings.full_text and entry.url:
                plain = msgspec.to_builtins(entry)
                yield Item(_key(entry), entry.url, _hash(entry), about={"entry": plain})
            else:
                yield self._document(entry)
        due_at = response.fetched_at + rest_s(found, response.headers)
        yield Checkpoint({"due_at": due_at}, RHYTHM, ordered=False)

    async def _fetch(self, ctx: Context) -> Response:
        if self.settings.url.lower().startswith(HTTP):
            return await ctx.fetch(self.settings.url, missing="fail")

        async def bring() -> Captured:
            path = self.settings.url.removeprefix("./")
            try:
                body = await ctx.in_thread(
                    lambda: read_file(self.place.root, path, LARGEST_FILE, "skip")
                )
            except Gone:
                raise Permanent(f"there is no file {self.settings.url}", cause="no file") from None
            return Captured(body)

        return await ctx.capture(self._address, bring, "application/rss+xml")

    @property
    def _address(self) -> str:
        url = self.settings.url
        return url if url.lower().startswith(HTTP) else f"feed://{self.place.source}/{url}"

    async def _full(self, ctx: Context, entry: Entry) -> Document:
        """The entry with the text of its page; as the feed has it, if there is no such page for us."""
        try:
            response = await ctx.fetch(entry.url, missing="fail")
        except FetchError as error:
            if not error.is_permanent:
                raise
            return self._document(entry, full_text=False)
        kind = "html" if "html" in response.content_type else "text"
        try:
            parsed = await ctx.in_thread(
                lambda: parse(
                    kind,
                    response.body,
                    url=response.url,
                    content_type=response.headers.get("content-type", ""),
                )
            )
        except BadData:
            return self._document(entry, full_text=False)
        document = self._document(entry, full_text=True)
        return msgspec.structs.replace(
            document, text=parsed.text, links=parsed.links, data=parsed.data
        )

    def _document(self, entry: Entry, full_text: bool | None = None) -> Document:
        shown = parse("html", (entry.content or entry.summary).encode(), url=entry.url)
        meta = {
            name: value
            for name in ("url", "published", "updated", "author", "categories", "enclosures")
            if (value := getattr(entry, name))
        }
        if entry.content and entry.summary:
            meta["summary"] = parse("html", entry.summary.encode()).text
        if full_text is not None:
            meta["full_text"] = full_text
        title = parse("html", entry.title.encode()).text if "<" in entry.title else entry.title
        return Document(
            key=_key(entry),
            kind="entry",
            title=" ".join(title.split())[:500],
            text=shown.text,
            meta=meta,
            links=shown.links,
            fingerprint=_hash(entry),
        )

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """What can be read as a feed: an answer, or a file that is called as one."""
        path, response = target.path, target.response
        if path is not None and path.suffix.lower() in SUFFIXES and path.is_file():
            is_small = path.stat().st_size <= LARGEST_FILE
            body, name = path.read_bytes() if is_small else b"", path.stem
            url = written = target.written(path)
        elif response is not None:
            body, url, written = response.body, response.url, target.url
            name = f"{urlsplit(url).netloc}-feed"
        else:
            return None
        try:
            read_entries(body, url)
        except BadData:
            return None
        return Recognised(keys={"url": written}, why="a feed", name=name)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"url": "https://example.com/feed.xml"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "feed.xml").write_text(DEMO, encoding="utf-8")
        return Sample("demo-feed", {"url": f"./{folder.name}/feed.xml"})


def _key(entry: Entry) -> str:
    return entry.id or entry.url or f"sha256:{_hash(entry)}"


def _hash(entry: Entry) -> str:
    return hashlib.sha256(_encode(entry)).hexdigest()


DEMO = """\
<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0"><channel><title>Mill news</title><link>https://mill.example/</link><ttl>60</ttl>
<item><guid>https://mill.example/1</guid><title>The wheel turns again</title>
<link>https://mill.example/1</link><pubDate>Mon, 02 Nov 2026 08:00:00 GMT</pubDate>
<description>After two weeks of repair, &lt;b&gt;the wheel&lt;/b&gt; turns again.</description></item>
<item><guid>https://mill.example/2</guid><title>Flour for everybody</title>
<link>https://mill.example/2</link><pubDate>Tue, 03 Nov 2026 08:00:00 GMT</pubDate>
<enclosure url="https://mill.example/2.mp3" type="audio/mpeg" length="12345"/>
<description>We grind on Saturdays.</description></item>
</channel></rss>
"""
