"""GitHub's REST API: pages of a listing, one after the other, and what its refusals mean."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from penstock.http.failures import FetchError
from penstock.jobs.failures import BadData
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

PER_PAGE = 100
# A million rows of one listing; a server that lists without end is stopped there.
MOST_PAGES = 10_000
_LINK = re.compile(r"<([^<>\s]{1,4000})>\s{0,9};([^<]{0,400})")
_NEXT = re.compile(r"""rel\s{0,9}=\s{0,9}["']?next\b""", re.IGNORECASE)
# Words for what a listing answers that is no failure: there is nothing to list.
NOTHING = {
    409: "the repository is empty",
    410: "they are disabled",
    451: "it is blocked for legal reasons",
}

R = TypeVar("R")


class Page(msgspec.Struct, Generic[R], frozen=True):
    """One page of a listing."""

    found: R
    next_url: str


class Api:
    """The API at one address, asked by the step that has this context."""

    def __init__(self, ctx: Context, address: str) -> None:
        self._ctx = ctx
        self._address = address
        self._asked = 0

    def at(self, path: str, **query: object) -> str:
        """The address of a path; what has no value is left out of the query."""
        pairs = "&".join(f"{name}={value}" for name, value in query.items() if value)
        return f"{self._address}/{path}" + (f"?{pairs}" if pairs else "")

    async def page(self, url: str, kind: type[R]) -> Page[R]:
        """One page, as it is now. Raises FetchError; BadData if it is not what the API documents."""
        self._count()
        # Always by its ETag: after a limit, a listing gets to where it was without being counted.
        response = await self._ctx.fetch(url, missing="fail", conditional=True)
        return self._page(response, kind)

    async def rows(self, url: str, kind: type[list[R]]) -> AsyncIterator[R]:
        """All rows of a listing, of which nothing is stored: for what is captured as a whole."""
        while url:
            self._count()
            page = self._page(await self._ctx.send(url, FetchOptions(missing="fail")), kind)
            for row in page.found:
                yield row
            url = page.next_url

    def _count(self) -> None:
        self._asked += 1
        if self._asked > MOST_PAGES:
            raise BadData(f"a listing has more than {MOST_PAGES:,} pages", cause="endless listing")

    def _page(self, response: Response, kind: type[R]) -> Page[R]:
        try:
            found = msgspec.json.decode(response.body, type=kind)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            where = urlsplit(response.url).path
            raise BadData(
                f"{where} is not what GitHub's API answers: {str(error)[:200]}",
                cause="not GitHub's API",
            ) from None
        return Page(found, self._next_url(response))

    def _next_url(self, response: Response) -> str:
        """By the Link header; a page elsewhere is not a page of this API."""
        for url, about in _LINK.findall(response.headers.get("link", "")):
            if _NEXT.search(about):
                if urlsplit(url)[:2] != urlsplit(self._address)[:2]:
                    raise BadData("the next page of a listing is not on the API's own host")
                return str(url)
        return ""


def nothing_there(error: FetchError) -> str:
    """Why there is nothing to list, in words; the error itself if that is not what it says."""
    if error.status not in NOTHING:
        raise error
    return NOTHING[error.status]
