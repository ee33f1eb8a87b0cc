"""Which repositories a source reads."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from penstock.connectors.files.globs import Globs
from penstock.connectors.github.rest import PER_PAGE, Api, Page
from penstock.connectors.github.rows import Repository
from penstock.http.failures import FetchError
from penstock.jobs.failures import Permanent

if TYPE_CHECKING:
    from penstock.connectors.github.keys import GitHubKeys
    from penstock.pipeline.context import Context

_FULL_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")


async def repositories(ctx: Context, keys: GitHubKeys) -> AsyncIterator[str]:
    """Their names: those that are listed, or those of the owner that are meant."""
    if keys.owner is None:
        for name in dict.fromkeys(keys.repositories):
            yield name
        return
    patterns = Globs(keys.repositories)
    usual = all(each.startswith("!") for each in keys.repositories)
    async for row in _owned(ctx, keys, keys.owner):
        name = row.full_name.partition("/")[2]
        decided = patterns.decide(name, False)
        is_meant = usual if decided is None else decided
        is_left_out = (row.archived and not keys.archived) or (row.fork and not keys.forks)
        if is_meant and not is_left_out and _FULL_NAME.fullmatch(row.full_name):
            yield row.full_name


async def _owned(ctx: Context, keys: GitHubKeys, owner: str) -> AsyncIterator[Repository]:
    """Of an organisation, with the private ones that the token can see; else the public ones of a user."""
    api = Api(ctx, keys.api)
    try:
        page = await api.page(_url(api, "orgs", owner), list[Repository])
    except FetchError as error:
        if error.status != 404:
            raise
        page = await _of_user(api, owner)
    while True:
        for row in page.found:
            yield row
        if not page.next_url:
            return
        page = await api.page(page.next_url, list[Repository])


async def _of_user(api: Api, owner: str) -> Page[list[Repository]]:
    try:
        return await api.page(_url(api, "users", owner), list[Repository])
    except FetchError as error:
        if error.status != 404:
            raise
        words = f"there is no user or organisation {owner}"
        raise Permanent(words, cause="no such owner") from None


def _url(api: Api, kind: str, owner: str) -> str:
    return api.at(f"{kind}/{owner}/repos", sort="full_name", per_page=PER_PAGE)
