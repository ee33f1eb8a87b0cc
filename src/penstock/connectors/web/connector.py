"""The connector `web`."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

from penstock.connectors.contract import Connector, Document, Gone, Item, Sample
from penstock.connectors.files.connector import read_patterns
from penstock.connectors.formats.kinds import kind_of, parse
from penstock.connectors.target import Recognised
from penstock.connectors.web.folder import DEMO, is_address, page_in, read_page, read_url
from penstock.connectors.web.links import Reach, Scope, canonical, trap_of
from penstock.http.failures import FetchError
from penstock.http.sitemap import Strangers, sitemap_urls
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import Reads, Usual, about, between
from penstock.settings.document import Entry
from penstock.settings.kinds import read_names, texts_schema
from penstock.settings.section import Section

if TYPE_CHECKING:
    from penstock.connectors.target import Target
    from penstock.http.response import Response
    from penstock.jobs.effects.pages import KnownPage
    from penstock.pipeline.context import Context

GONE = (404, 410)
PAGES = ("text/html", "application/xhtml+xml", "text/plain", "")
FIRST_PAGES = ("index.html", "index.htm")
_DEPTH = "depth:"
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")
_SITEMAP = re.compile(rb"<(\w{1,20}:)?(urlset|sitemapindex)[\s>]")


def _read_urls(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "addresses", read_url)
    return found


class WebKeys(ConnectorKeys, frozen=True, kw_only=True):
    """The pages of a site: by a sitemap, by links from a page, or from a list."""

    url: Annotated[
        str | None,
        Reads(read_page, lambda _: {"type": "string", "minLength": 1}),
        about(
            "a page to begin with; its links are followed. It may be a file, relative to penstock.yaml, "
            "such as ./site/index.html: its folder is the site then"
        ),
        Usual("none"),
    ] = None
    sitemap: Annotated[
        str | None,
        Reads(read_url, lambda _: {"type": "string", "minLength": 1}),
        about("a sitemap, or an index of sitemaps"),
        Usual("none"),
    ] = None
    urls: Annotated[
        tuple[str, ...], Reads(_read_urls, texts_schema), about("a list of pages"), Usual("none")
    ] = ()
    depth: Annotated[int, between(0, 100), about("how many links away from `url`")] = 3
    max_pages: Annotated[
        int,
        between(1, 10_000_000),
        about("pages of one run; the rest is left out, and the run says so"),
    ] = 10_000
    scope: Annotated[
        Scope,
        about(
            "links that are followed: on the same `host`, below the same path (`prefix`), or also on hosts "
            "below it (`domain`, which needs `fetch.hosts`)"
        ),
    ] = "host"
    include: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about('paths of pages to read, such as `["/products/**"]`, in the syntax of ignore files'),
        Usual("all"),
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about("paths of pages that are left out, in the same syntax"),
        Usual("none"),
    ] = ()
    html: Annotated[
        bool, about("hand the page itself to the steps of a pipeline, too, as `html` in `meta`")
    ] = False

    @classmethod
    def refuse(cls, at: Section) -> None:
        if not any(at.has(name) for name in ("url", "sitemap", "urls")):
            raise at.error("url", "is missing; name a url, a sitemap or urls")


class Web(Connector[WebKeys]):
    """Pages of a site, each with its main text, links and structured data (JSON-LD, microdata, OpenGraph).

    A page that its sitemap says is unchanged is not asked for; others by ETag and content.
    """

    name = "web"
    summary = "the pages of a site, by its sitemap, by links, or from a list"
    Settings = WebKeys
    deletions = "asked"

    def bounds(self) -> tuple[int, int]:
        return max(1, self.settings.depth + 1), self.settings.max_pages

    async def discover(self, ctx: Context, cursors: Mapping[str, Any]) -> AsyncIterator[Item]:
        for url in self.settings.urls:
            yield Item(canonical(url), canonical(url))
        if self.settings.sitemap is not None:
            async for item in self._listed(ctx, self.settings.sitemap):
                yield item
        if self.start:
            yield self._linked(canonical(self.start), 0)

    @property
    def start(self) -> str:
        """The address of the page to begin with; empty if there is none."""
        url = self.settings.url
        if not url or is_address(url):
            return url or ""
        return self._site + quote(Path(url).name)

    async def bring(self, ctx: Context, item: Item) -> Response:
        """The page of an item."""
        if self.is_in_folder(item):
            return await page_in(self.folder, ctx, item.address)
        return await ctx.fetch(item.address, missing="fail")

    def is_in_folder(self, item: Item) -> bool:
        return item.address.startswith(self._site)

    def key_of(self, address: str) -> str:
        return address.removeprefix(self._site)

    @property
    def _site(self) -> str:
        """What the addresses of a folder's pages begin with: a host that no network has."""
        source = self.place.source
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        return f"http://{source if _LABEL.fullmatch(source) else digest}.invalid/"

    @property
    def folder(self) -> Path:
        return (self.place.root / Path(self.settings.url or ".").expanduser()).parent

    async def _listed(self, ctx: Context, sitemap: str) -> AsyncIterator[Item]:
        """The pages of the sitemap that are meant."""
        changes: dict[str, str] = {}
        strangers = Strangers(ctx.source.reach.may_list)

        async def get(url: str, **_: Any) -> Response:
            return await ctx.fetch(url, missing="fail")

        walk = sitemap_urls(
            get, sitemap, announce=changes.__setitem__, strangers=strangers, note=ctx.note
        )
        reach = Reach(sitemap, "domain", self.settings.include, self.settings.exclude)
        async for page in walk:
            changed = changes.pop(page, "")
            url = canonical(page)
            if reach.holds(url):
                yield Item(url, url, changed=changed)
        if strangers.count:
            ctx.note(strangers.words())

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document | Item]:
        try:
            response = await self.bring(ctx, item)
        except FetchError as error:
            if error.status in GONE:
                raise Gone(f"status {error.status}") from None
            raise
        content_type = response.headers.get("content-type", "")
        kind = kind_of(item.address.partition("?")[0], response.body, content_type)
        parsed = await ctx.in_thread(
            lambda: parse(kind, response.body, url=response.url, content_type=content_type)
        )
        meta = dict(parsed.meta)
        if response.url != item.address:
            meta["url"] = response.url
        if self.settings.html and parsed.kind == "html":
            meta["html"] = response.text
        depth = item.about.get("depth")
        if self.start and depth is not None and depth < self.settings.depth:
            traps: Counter[str] = Counter()
            for link in self.followed(ctx, parsed.links, traps):
                yield self._linked(link, depth + 1)
            if traps:
                meta["links_left_out"] = dict(traps)
        yield Document(
            key=item.key,
            kind=parsed.kind,
            title=parsed.title,
            text=parsed.text,
            meta=meta,
            links=parsed.links,
            data=parsed.data,
            fingerprint=response.content_hash,
        )

    def followed(self, ctx: Context, links: list[str], traps: Counter[str]) -> list[str]:
        """Of the links of a page: those that are followed, in one spelling; the rest is counted by why."""
        reach = Reach(self.start, self.settings.scope, self.settings.include, self.settings.exclude)
        year = datetime.fromtimestamp(ctx.now(), UTC).year
        found: dict[str, None] = {}
        for link in links:
            try:
                url = canonical(link)
            except ValueError:
                continue
            if not reach.holds(url):
                continue
            if trap := trap_of(url, year):
                traps[trap] += 1
            else:
                found[url] = None
        return list(found)

    def _linked(self, url: str, depth: int) -> Item:
        # Remembered with its depth: in a later run, links of a known page are followed from there.
        return Item(self.key_of(url), url, changed=f"{_DEPTH}{depth}", about={"depth": depth})

    def again(self, key: str, page: KnownPage) -> Item:
        depth = page.announced.removeprefix(_DEPTH)
        if page.announced.startswith(_DEPTH) and depth.isdecimal():
            return self._linked(page.url, int(depth))
        return Item(key, page.url)

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """A sitemap, a site that has one, or a page with links; also the first page of a site in a folder."""
        path, response = target.path, target.response
        if path is not None and path.name.lower() in FIRST_PAGES and path.is_file():
            keys = {"url": target.written(path)}
            return Recognised(keys=keys, why="a site in a folder", name=path.parent.name, fit=20)
        if response is None:
            return None
        parts = urlsplit(response.url)
        if _is_sitemap(response):
            return Recognised(
                keys={"sitemap": target.url}, why="a sitemap", name=parts.netloc, fit=60
            )
        if response.content_type not in PAGES:
            return None
        if urlsplit(target.url).path not in ("", "/"):
            keys = {"url": response.url, "scope": "prefix"}
        elif sitemap := await _sitemap_of(f"{parts.scheme}://{parts.netloc}", target):
            why = "a site with a sitemap"
            return Recognised(keys={"sitemap": sitemap}, why=why, name=parts.netloc, fit=20)
        else:
            keys = {"url": response.url}
        return Recognised(keys=keys, why="a page with links", name=parts.netloc, fit=10)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"sitemap": "https://example.com/sitemap.xml"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in DEMO.items():
            (folder / name).write_text(text, encoding="utf-8")
        return Sample("demo-web", {"url": f"./{folder.name}/index.html"})


def _is_sitemap(response: Response) -> bool:
    return _SITEMAP.search(response.body[:20_000]) is not None


async def _sitemap_of(origin: str, target: Target) -> str:
    """Where a site has its sitemap, if it is in one of the usual places."""
    for url in (f"{origin}/sitemap.xml", f"{origin}/sitemap_index.xml"):
        try:
            if target.fetch is not None and _is_sitemap(await target.fetch(url)):
                return url
        except FetchError:
            continue
    return ""
