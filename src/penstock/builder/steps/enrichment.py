"""Enrichment: what geocoders, searches, domains, sites, the DNS and maps say about a company."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.builder.enrich.address import with_address
from penstock.builder.enrich.dns import DnsAnswer
from penstock.builder.enrich.domain import AGAINST, Candidate, choose, with_domain
from penstock.builder.enrich.email import is_free, judge_email, mail_domain
from penstock.builder.enrich.geocoder import GEOCODERS, located
from penstock.builder.enrich.google_maps import Places, with_place
from penstock.builder.enrich.phone import judge_phone
from penstock.builder.enrich.places import Place
from penstock.builder.enrich.serp import GenericJson, Hit, LocalIndex, Searx, query_of
from penstock.builder.enrich.site import with_site
from penstock.builder.job import Job, Serp
from penstock.builder.normalize import urls
from penstock.builder.steps.crawl import likely_domains, site_pages
from penstock.builder.steps.exchange import answer_of, looked_up
from penstock.builder.steps.normalisation import parser_of
from penstock.builder.steps.place import passed_on, the_job
from penstock.jobs.failures import AuthFailed, BadData, Permanent
from penstock.pipeline.context import Captured

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

Found = dict[str, Any]
MOST_ASKED = 3


async def enrich_address(company: Found, ctx: Context) -> Found:
    """The parts of an address in one line, and coordinates of the geocoder."""
    job = the_job(ctx)
    made = with_address(company, parser_of(job))
    if job.address.geocoder is not None and made.get("lat") is None:
        geocoder = GEOCODERS[job.address.geocoder](job.address.url)
        ask = geocoder.ask(made)
        if ask is not None:
            answer = await answer_of(ctx, ask, "the geocoder", "address.url")
            made = located(made, geocoder.read(answer))
    return passed_on(made)


async def http_serp(company: Found, ctx: Context) -> Found:
    """The hits of a search for the company."""
    job = the_job(ctx)
    query = query_of(company, job.serp.query)
    if job.serp.provider is None or not query:
        return passed_on(company)
    if job.serp.provider == "index":
        hits = (await _index(ctx, job.serp)).search(query)
    else:
        provider = _search(job.serp)
        answer = await answer_of(ctx, provider.ask(query), "the search", "serp.url")
        hits = provider.read(answer)
    return passed_on({**company, "hits": msgspec.to_builtins(hits[: job.serp.most])})


def _search(serp: Serp) -> Searx | GenericJson:
    if serp.provider == "searx":
        return Searx(serp.url)
    return GenericJson(serp.url, serp.results, serp.names, serp.headers)  # type: ignore[arg-type]


async def _index(ctx: Context, serp: Serp) -> LocalIndex:
    """A file of hits, kept as it was read: a replay searches the same."""

    async def bring() -> Captured:
        path = Path(ctx.source.root, serp.url)
        try:
            return Captured(await ctx.in_thread(path.read_bytes))
        except OSError as error:
            raise Permanent(f"serp.url: {path.name}: {error.strerror}", cause="serp.url") from None

    response = await ctx.capture(f"serp://{ctx.source.key}/{serp.url}", bring, is_page=False)
    try:
        return _index_of(response.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadData(
            "serp.url: the file is not JSON lines with url, title and snippet", cause="serp.url"
        ) from None


@lru_cache(maxsize=4)
def _index_of(body: bytes) -> LocalIndex:
    return LocalIndex(msgspec.json.Decoder(Hit).decode_lines(body))


async def enrich_domain(company: Found, ctx: Context) -> Found:
    """The domain that is believed, by all that speaks for each; one that the DNS does not know is none."""
    job = the_job(ctx)
    likely = _looked_at(company, likely_domains(company, job))
    answers = await _looked_up(ctx, job, company, likely)
    believed = choose(likely, answers)
    known = {
        domain: answer.exists is not False and bool(answer.values)
        for domain, answer in answers.items()
        if answer.exists is not None
    }
    is_checked = bool(known or company.get("pages"))
    made = with_domain(company, believed, is_checked=is_checked)
    if known:
        made = _checked(made, "dns", known)
    refused = [
        each.domain
        for each in likely
        if AGAINST.keys() & set(each.evidence) or not known.get(each.domain, True)
    ]
    return passed_on(_checked(made, "refused_domains", refused) if refused else made)


def _looked_at(company: Found, likely: Sequence[Candidate]) -> list[Candidate]:
    """Where sites were looked at: those, and domains that a list gives. A hit alone makes no domain."""
    seen = {page["domain"] for page in company.get("pages") or ()}
    given = {"website", "email"}
    return [
        each for each in likely if not seen or each.domain in seen or given & set(each.evidence)
    ]


async def _looked_up(
    ctx: Context, job: Job, company: Found, likely: Sequence[Candidate]
) -> dict[str, DnsAnswer]:
    """What the DNS says of each domain. One whose site has answered is there, without a question."""
    there = {
        page["domain"] for page in company.get("pages") or () if not page["facts"].get("is_silent")
    }
    found = {each.domain: DnsAnswer(True, ("its site",)) for each in likely if each.domain in there}
    if job.dns.url:
        for each in [each for each in likely if each.domain not in there][:MOST_ASKED]:
            found[each.domain] = await looked_up(ctx, job.dns.url, each.domain, "A")
    return found


async def enrich_site(company: Found, ctx: Context) -> Found:
    """What the pages of the company's own site say; they are fetched if nobody has."""
    job = the_job(ctx)
    domain = company.get("domain")
    pages = [page for page in company.get("pages") or () if page["domain"] == domain]
    if domain and not pages:
        site = Candidate(domain, 1.0, (), company.get("website"))
        pages = await site_pages(ctx, job, company, site)
    made = with_site(company, [page["facts"] for page in pages])
    # From here on nobody looks at pages and hits.
    return passed_on({k: v for k, v in made.items() if k not in ("pages", "hits")})


async def enrich_email(company: Found, ctx: Context) -> Found:
    """Whether the address can be the company's, by its form, its domain and the DNS."""
    job = the_job(ctx)
    email = company.get("email")
    if email is None:
        return passed_on(company)
    host = mail_domain(email)
    mx = address = None
    if host is not None and job.dns.url and not is_free(email):
        mx = await looked_up(ctx, job.dns.url, host, "MX")
        if mx.exists and not mx.values:
            address = await looked_up(ctx, job.dns.url, host, "A")
    judged = judge_email(email, company.get("domain"), mx, address)
    return passed_on(_checked(company, "email", {"of": email, **judged}))


async def enrich_phone(company: Found) -> Found:
    """Whether the number can be the company's, by the plan of its country."""
    phone = company.get("phone")
    if phone is None:
        return passed_on(company)
    judged = judge_phone(phone, company.get("country"))
    return passed_on(_checked(company, "phone", {"of": phone, **judged}))


def _checked(company: Found, name: str, judged: Any) -> Found:
    return {**company, "checks": {**(company.get("checks") or {}), name: judged}}


async def enrich_google_maps(company: Found, ctx: Context) -> Found:
    """What a Places API knows of the company."""
    job = the_job(ctx)
    if job.maps.lacks_key:
        raise AuthFailed(
            'maps.key is missing: set a variable, and maps: {key: "${MAPS_KEY}"} in the job, or switch off '
            "the feature maps",
            cause="maps.key",
        )
    provider = Places(job.maps.url, job.maps.key)
    ask = provider.ask(company)
    if ask is None:
        return passed_on(company)
    answer = await answer_of(ctx, ask, "the Places API", "maps.url")
    places = [_without_refused(company, place) for place in provider.read(answer)]
    return passed_on(with_place(company, places))


def _without_refused(company: Found, place: Place) -> Place:
    """The place without its website, if that was looked at and is nobody's: a map learns of it later."""
    refused = (company.get("checks") or {}).get("refused_domains") or ()
    if place.website is None or urls.domain_of(place.website) not in refused:
        return place
    return msgspec.structs.replace(place, website=None)
