"""The crawl: the pages of a company's site that matter, and pages that need a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.builder.enrich.domain import Candidate, candidates
from penstock.builder.enrich.requests import LONGEST_PAGE
from penstock.builder.enrich.site import contact_links, page_facts
from penstock.builder.job import Job
from penstock.builder.steps.exchange import looked_up, page_of
from penstock.builder.steps.place import PAGE, passed_on, the_job
from penstock.http.response import Response

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

Found = dict[str, Any]
# Evidence of a domain that nobody has named.
GUESSED = frozenset({"label is the name", "label is like the name"})
_HTML = ("text/html", "application/xhtml+xml", "")


async def headless_collect(link: Found, ctx: Context) -> Found | None:
    """A page as it stands when its scripts have run."""
    if not link.get("browser"):
        return None
    http = the_job(ctx).http
    about: Found = {"browser": http.browser} if http.browser else {}
    response = await ctx.render(link["url"], wait=http.wait, **about)
    return {"kind": PAGE, "url": response.url, "html": response.text[:LONGEST_PAGE]}


async def crawl_site(company: Found, ctx: Context) -> Found:
    """The site of the likeliest domain."""
    job = the_job(ctx)
    found: list[Found] = []
    for each in (await _unseen(ctx, company, job))[:1]:
        found += await site_pages(ctx, job, company, each)
    return _with_pages(company, found)


async def crawl_site_async(company: Found, ctx: Context) -> Found:
    """The sites of all likely domains that nobody has looked at, several at once."""
    job = the_job(ctx)
    turns = asyncio.Semaphore(job.crawl.concurrency)

    async def crawled(each: Candidate) -> list[Found]:
        async with turns:
            return await site_pages(ctx, job, company, each)

    wanted = await _unseen(ctx, company, job)
    if len(wanted) == 1:
        return _with_pages(company, await crawled(wanted[0]))
    answers = await asyncio.gather(*map(crawled, wanted), return_exceptions=True)
    found: list[Found] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        found += answer
    return _with_pages(company, found)


def likely_domains(company: Found, job: Job) -> list[Candidate]:
    """The domains that may be the company's, by all that is known so far, the best first."""
    return candidates(
        company,
        company.get("hits") or (),
        company.get("pages") or (),
        suffixes=job.crawl.guess,
    )


async def _unseen(ctx: Context, company: Found, job: Job) -> list[Candidate]:
    """The likely domains that nobody has looked at. One that is only guessed must be known to the DNS."""
    seen = {page["domain"] for page in company.get("pages") or ()}
    wanted: list[Candidate] = []
    for each in likely_domains(company, job):
        if each.domain not in seen and not await _is_made_up(ctx, job, each):
            wanted.append(each)
        if len(wanted) + len(seen) >= job.crawl.candidates:
            break
    return wanted


async def _is_made_up(ctx: Context, job: Job, site: Candidate) -> bool:
    if not job.dns.url or set(site.evidence) - GUESSED:
        return False
    answer = await looked_up(ctx, job.dns.url, site.domain, "A")
    return answer.exists is False or (answer.exists is True and not answer.values)


def _with_pages(company: Found, found: Sequence[Found]) -> Found:
    return passed_on({**company, "pages": [*(company.get("pages") or ()), *found]})


async def site_pages(ctx: Context, job: Job, company: Found, site: Candidate) -> list[Found]:
    """What the pages of a site say, home page first; one that does not answer says just that."""
    country = company.get("country")
    home = await page_of(ctx, f"http://{site.domain}/" if site.url is None else _root(site.url))
    if not isinstance(home, Response):
        facts = {} if home.is_closed else {"is_silent": True}
        return [{"domain": site.domain, "facts": facts, "reason": home.reason}]
    if home.content_type not in _HTML:
        return [{"domain": site.domain, "facts": {}, "reason": f"it is {home.content_type}"}]
    found = [_facts(site, home, country)]
    for url in contact_links(home.text, home.url, job.crawl.max_pages - 1):
        page = await page_of(ctx, url)
        if isinstance(page, Response) and page.content_type in _HTML:
            found.append(_facts(site, page, country))
    return found


def _root(url: str) -> str:
    """The home page of the site that an address is of."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/"


def _facts(site: Candidate, page: Response, country: str | None) -> Found:
    facts = page_facts(page.text, page.url, country)
    return {"domain": site.domain, "facts": facts}
