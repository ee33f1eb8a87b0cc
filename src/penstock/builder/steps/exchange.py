"""Requests of the steps: pages and answers of providers, each stored before it is read."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.builder.enrich.dns import DnsAnswer, JsonDns
from penstock.builder.enrich.requests import LONGEST_PAGE, Ask
from penstock.http.addresses import MAX_URL
from penstock.http.failures import (
    BudgetSpent,
    Disallowed,
    FetchError,
    HostBroken,
    HostClosed,
    HostOutside,
    Paced,
    safe_url,
)
from penstock.http.response import Response
from penstock.jobs.failures import BadData
from penstock.jobs.outcome import Snooze
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.pipeline.context import Context

# Whoever answers so is there, and lets nobody in.
CLOSED = frozenset({401, 403, 405, 406, 451})
# A site that fails is asked again once; one that asks to wait, a few times.
MOST_TRIES = 2
SOONEST_S = 0.1
MOST_STARTS = 6
WAITS = frozenset({429, 503})


async def fetched(ctx: Context, ask: Ask) -> Response:
    """What is at an address. In an incremental run it is handed over also if it is as it was."""

    async def bring(etag: str | None, last_modified: str | None) -> Response:
        options = FetchOptions(
            method=None if ask.method == "GET" else ask.method,
            headers=ask.headers or None,
            body=ask.body,
            max_bytes=ask.max_bytes,
            etag=None if ask.body else etag,
            last_modified=None if ask.body else last_modified,
        )
        response = await ctx.send(ask.url, options)
        return replace(response, requested_url=address)

    address = address_of(ask)
    response = await ctx.exchange(address, bring)
    if response.is_done and ctx.in_progress.visits is not None:
        # The steps after this one need its item in every run: a page that is the same is no reason to end.
        ctx.in_progress.visits.go_on()
    return response


def address_of(ask: Ask) -> str:
    """Where the answer is stored: the URL, and for a POST also what was posted."""
    if ask.body is None:
        return ask.url
    posted = hashlib.sha256(ask.body).hexdigest()[:32]
    return f"{ask.url}{'&' if '?' in ask.url else '?'}posted={posted}"[:MAX_URL]


async def answer_of(ctx: Context, ask: Ask, who: str, key: str) -> Any:
    """The answer of a provider as JSON. An error names the provider, and its key in the job."""
    try:
        response = await fetched(ctx, ask)
    except (BudgetSpent, HostClosed):
        raise
    except FetchError as error:
        error.args = (f"{who} ({key} of the job): {error}",)
        raise
    try:
        return response.json()
    except FetchError:
        kind = response.content_type or "no type"
        raise BadData(
            f"{who} at {safe_url(ask.url)} answered with {kind}, not with JSON: check {key} of the job",
            cause=f"{key}: no JSON",
        ) from None


class NoPage(msgspec.Struct, frozen=True):
    """Why there is no page. `is_closed`: somebody is there, and does not want to be read."""

    reason: str
    is_closed: bool = False


async def looked_up(ctx: Context, url: str, name: str, kind: str) -> DnsAnswer:
    """What the resolver at this address says of a name."""
    provider = JsonDns(url)
    return provider.read(await answer_of(ctx, provider.ask(name, kind), "the DNS", "dns.url"), kind)


async def page_of(ctx: Context, url: str) -> Response | NoPage:
    """A page of a company's site, or why there is none.

    A site that may come back is tried again by a later attempt; then its company goes on without it. Where
    the breaker of a host is open, others have tried it often enough.
    """
    try:
        return await fetched(ctx, Ask(url, max_bytes=LONGEST_PAGE))
    except (BudgetSpent, HostOutside, Paced):
        raise
    except FetchError as error:
        if _may_come_back(ctx, error):
            if isinstance(error, HostClosed):
                # Only this company waits: its site is not the place that the source reads.
                raise Snooze(max(error.delay_s, SOONEST_S)) from None
            raise
        is_closed = isinstance(error, Disallowed) or error.status in CLOSED
        return NoPage(f"HTTP {error.status}" if error.status else error.message, is_closed)


def _may_come_back(ctx: Context, error: FetchError) -> bool:
    job = ctx.in_progress.job
    if error.is_permanent or isinstance(error, HostBroken) or job.attempt >= MOST_STARTS:
        return False
    is_waiting = error.status in WAITS or isinstance(error, HostClosed)
    return is_waiting or job.tries + 1 < MOST_TRIES
