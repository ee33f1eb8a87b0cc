"""Collection: rows of dumps and APIs, and pages of seeds and sitemaps."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.builder.enrich.requests import LONGEST_PAGE, Ask
from penstock.builder.job import NOTHING_TO_READ, Dump, Endpoint, Job
from penstock.builder.normalize import urls
from penstock.builder.steps.exchange import fetched
from penstock.builder.steps.place import LINK, PAGE, ROW, run_of, runs_collection, the_job
from penstock.connectors.api import Api
from penstock.connectors.api.keys import ApiKeys
from penstock.connectors.contract import Document, Item, Place
from penstock.connectors.dump import Dump as DumpConnector
from penstock.connectors.dump.keys import DumpKeys
from penstock.jobs.failures import Permanent
from penstock.jobs.outcome import Skip
from penstock.pipeline.context import Context

if TYPE_CHECKING:
    from penstock.connectors import Connector

Found = dict[str, Any]
HTML = frozenset({"text/html", "application/xhtml+xml", ""})


class WithoutParams(Context):
    """A context whose params are nobody's: the connector `api` would send them."""

    __slots__ = ()

    @property
    def params(self) -> dict[str, Any]:
        return {}


async def dumps_collect(ctx: Context) -> AsyncIterator[Found]:
    """Rows of all dumps, then the seeds."""
    job = the_job(ctx)
    _begin(ctx, job)
    for dump in job.dumps:
        connector = DumpConnector(_dump_keys(dump), _place(ctx))
        name = f"dump:{dump.name or Path(dump.path).name}"
        async for row in _rows(ctx, connector, name, dump.country, dump.fields):
            yield row
    for url in dict.fromkeys(job.http.seeds):
        yield _link(ctx, job, url)


async def api_collect(ctx: Context) -> AsyncIterator[Found]:
    """Rows of all endpoints."""
    job = the_job(ctx)
    _begin(ctx, job)
    for endpoint in job.api.endpoints:
        connector = Api(_api_keys(endpoint), _place(ctx))
        name = f"api:{endpoint.name or urls.host_of(endpoint.url) or Path(endpoint.url).name}"
        asking = WithoutParams(ctx.in_progress, "api.collect")
        async for row in _rows(asking, connector, name, endpoint.country, endpoint.fields):
            yield row


async def http_sitemap(ctx: Context) -> AsyncIterator[Found]:
    """Pages of the sitemaps that match, each once, up to the bound."""
    job = the_job(ctx)
    wanted = _patterns(job)
    addresses = [*job.sitemap.urls, *(_sitemap_of(domain) for domain in job.sitemap.domains)]
    taken: set[str] = set()
    for address in dict.fromkeys(addresses):
        async for url in ctx.sitemap(address):
            if url in taken or (wanted and not any(each.search(url) for each in wanted)):
                continue
            if len(taken) >= job.sitemap.max_urls:
                ctx.note(
                    f"sitemap.max_urls ({job.sitemap.max_urls:,}) is reached; the rest is left out"
                )
                return
            taken.add(url)
            yield _link(ctx, job, url)


async def http_static(link: Found, ctx: Context) -> Found | None:
    """A page. What needs a browser is left to `headless.collect`."""
    if link.get("browser"):
        return None
    response = await fetched(ctx, Ask(link["url"], max_bytes=None))
    if response.content_type not in HTML:
        raise Skip(f"it is {response.content_type}, no page")
    return {"kind": PAGE, "url": response.url, "html": response.text[:LONGEST_PAGE]}


def _begin(ctx: Context, job: Job) -> None:
    """Remember when the run began; refuse one that has nothing to read."""
    if not job.reads_anything:
        raise Permanent(NOTHING_TO_READ, cause="job")
    # Attempts after the first find it there, and leave it.
    ctx.save(runs_collection(job), key=run_of(ctx), data={"began_at": ctx.now()}, merge="keep")


def _place(ctx: Context) -> Place:
    return Place(ctx.source.key, Path(ctx.source.root))


def _dump_keys(dump: Dump) -> DumpKeys:
    return DumpKeys(
        path=dump.path,
        format=dump.format,
        delimiter=dump.delimiter,
        header=dump.header,
        encoding=dump.encoding,
        members=dump.members,
        element=dump.element,
    )


def _api_keys(endpoint: Endpoint) -> ApiKeys:
    return ApiKeys(
        url=endpoint.url,
        records=endpoint.records,
        key=endpoint.key,
        paging=endpoint.paging,
        auth=endpoint.auth,
        method=endpoint.method,
        body=endpoint.body,
    )


async def _rows(
    ctx: Context, connector: Connector[Any], name: str, country: str, fields: Mapping[str, str]
) -> AsyncIterator[Found]:
    """The rows of one place, as its connector reads them: part after part, page after page."""
    about: Found = {"country": country} if country else {}
    if fields:
        about["fields"] = dict(fields)
    waiting = [each async for each in connector.discover(ctx, {}) if isinstance(each, Item)]
    while waiting:
        item = waiting.pop(0)
        async for found in connector.read(ctx, item):
            if isinstance(found, Item):
                waiting.append(found)
            elif isinstance(found, Document) and isinstance(found.data, dict) and _is_row(found):
                yield _row(f"{name} {found.key}", name, found.data, about)


def _is_row(document: Document) -> bool:
    # At its end a dump says what it was.
    return document.kind != "table"


def _row(key: str, source: str, data: Found, about: Found) -> Found:
    return {"kind": ROW, "key": key, "source": source, **about, "row": data}


def _link(ctx: Context, job: Job, url: str) -> Found:
    link: Found = {"kind": LINK, "url": url}
    if any(url.startswith(each) for each in job.http.headless) and _has_browser(ctx):
        link["browser"] = True
    return link


def _has_browser(ctx: Context) -> bool:
    """Whether the profile has the step that draws pages."""
    return "headless.collect" in _fed(ctx)


def _fed(ctx: Context) -> Iterator[str]:
    return (feed.stage for feed in ctx.in_progress.stage.root.feeds)


def _patterns(job: Job) -> list[re.Pattern[str]]:
    try:
        return [re.compile(each) for each in job.sitemap.allow_patterns]
    except re.error as error:
        raise Permanent(f"job: sitemap.allow_patterns: {error}", cause="job") from None


def _sitemap_of(domain: str) -> str:
    bare = domain.strip().rstrip("/")
    return f"{bare if '://' in bare else f'https://{bare}'}/sitemap.xml"
