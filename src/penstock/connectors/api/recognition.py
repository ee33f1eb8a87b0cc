"""Recognition: how an API pages, by what its first answer looks like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from penstock.connectors.api.keys import ApiKeys, ApiPagingKeys
from penstock.connectors.api.paging import NUMBERED, Page, next_link, page_info_at
from penstock.connectors.jsonpath import compile_path, path_of_selectors

# Where answers keep what they say of their pages.
_PLACES: tuple[tuple[str, ...], ...] = (
    (), ("links",), ("_links",), ("paging",), ("pagination",), ("meta",), ("page",), ("info",),
    ("meta", "pagination"), ("meta", "page"), ("response_metadata",), ("data",),
)  # fmt: skip
_NEXT_URLS = (
    "next",
    "next_url",
    "nextUrl",
    "next_page_url",
    "nextLink",
    "@odata.nextLink",
    "next_link",
    "next_page",
)
_URL = re.compile(r"https?://|/|\?|[\w./-]{1,500}\.json(\?|$)")
_CURSORS = {
    "next_cursor": "cursor", "nextCursor": "cursor", "next_page_token": "page_token",
    "nextPageToken": "pageToken", "next_token": "next_token", "nextToken": "nextToken",
    "continuation_token": "continuation_token", "continuationToken": "continuationToken",
    "end_cursor": "after", "endCursor": "after", "scroll_id": "scroll_id",
}  # fmt: skip
_TOTALS = (
    "total",
    "total_count",
    "totalCount",
    "total_results",
    "count",
    "total_items",
    "totalItems",
)
_PAGES = ("total_pages", "totalPages", "last_page", "lastPage", "page_count", "pageCount", "pages")
_PAGE_PARAMS = ("page", "_page", "p", "pageNumber", "page_number", "pageno")
_OFFSET_PARAMS = ("offset", "skip", "start", "startAt", "from")
_SIZES = ("per_page", "perPage", "page_size", "pageSize", "limit", "size", "_limit", "take")


def recognised(keys: ApiKeys, page: Page) -> ApiPagingKeys:
    """The paging that the first answer shows; of kind `none` if it shows none."""
    given = keys.paging
    found = (
        _relay(keys, page)
        or _link(page)
        or _next_url(page)
        or _cursor(page)
        or _stripe(page)
        or _numbered(page, _query(keys, page))
        or ApiPagingKeys(kind="none")
    )
    kept = {
        name: value for name in ("size", "size_param", "more") if (value := getattr(given, name))
    }
    return replace(found, max_pages=given.max_pages, **kept)


def completed(keys: ApiKeys, page: Page) -> ApiPagingKeys:
    """The paging of a kind that is configured, with what is left to recognise from the first answer."""
    given = keys.paging
    if given.kind == "auto":
        return recognised(keys, page)
    found: ApiPagingKeys | None = None
    if given.kind == "next" and given.next is None:
        found = _next_url(page)
    elif given.kind == "cursor" and given.next is None and given.last is None:
        found = _cursor(page)
    elif given.kind in NUMBERED:
        found = _numbered(page, {"page": "1"})
    if found is None:
        return given
    names = ("next", "param", "total", "pages")
    missing = [name for name in names if getattr(given, name) is None]
    if given.kind in NUMBERED:
        missing = [name for name in missing if name in ("total", "pages")]
    return replace(given, **{name: getattr(found, name) for name in missing})


def described(paging: ApiPagingKeys) -> str:
    """The paging in a few words."""
    match paging.kind:
        case "link":
            return "the Link header"
        case "next":
            return f"the URL at {paging.next}"
        case "cursor":
            where = paging.next or f"{paging.last} of the last record"
            return f"the cursor at {where}, sent as {paging.param}"
        case "relay":
            return "GraphQL's pageInfo"
        case "page":
            return f"the page number, sent as {paging.param}"
        case "offset":
            return f"the offset, sent as {paging.param}"
    return "one page: the answer tells nothing of others"


def _query(keys: ApiKeys, page: Page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.url).query, True))


def _relay(keys: ApiKeys, page: Page) -> ApiPagingKeys | None:
    info = page_info_at(page.records_at).first(page.answer) if page.records_at.selectors else None
    is_relay = isinstance(info, dict) and "hasNextPage" in info
    return ApiPagingKeys(kind="relay") if keys.graphql is not None and is_relay else None


def _link(page: Page) -> ApiPagingKeys | None:
    return ApiPagingKeys(kind="link") if next_link(page.headers.get("link", "")) else None


def _next_url(page: Page) -> ApiPagingKeys | None:
    for place, name, value in _named(page.answer, _NEXT_URLS):
        path = (*place, name)
        if isinstance(value, dict):
            path, value = (*path, "href"), value.get("href")
        if isinstance(value, str) and _URL.match(value):
            return ApiPagingKeys(kind="next", next=str(path_of_selectors(path)))
        if name == "next_page" and isinstance(value, int) and not isinstance(value, bool):
            return ApiPagingKeys(kind="cursor", next=str(path_of_selectors(path)), param="page")
    return None


def _cursor(page: Page) -> ApiPagingKeys | None:
    for place, name, value in _named(page.answer, tuple(_CURSORS)):
        if isinstance(value, str | int) and value and not isinstance(value, bool):
            path = str(path_of_selectors((*place, name)))
            return ApiPagingKeys(kind="cursor", next=path, param=_CURSORS[name])
    return None


def _stripe(page: Page) -> ApiPagingKeys | None:
    """Lists as Stripe has them, and those who do as it does."""
    answer = page.answer
    if not isinstance(answer, dict) or answer.get("object") != "list" or "has_more" not in answer:
        return None
    return ApiPagingKeys(kind="cursor", last="$.id", param="starting_after", more="$.has_more")


def _numbered(page: Page, query: Mapping[str, str]) -> ApiPagingKeys | None:
    """By what the answer tells of its number, and by the parameters of the address itself."""
    said = {name: (place, value) for place, name, value in _named(page.answer, None)}
    total = next((name for name in _TOTALS if _is_count(said, name)), None)
    if total == "count" and said[total][1] <= len(page.records):
        total = None  # it counts the records of this page alone
    pages = next((name for name in _PAGES if _is_count(said, name)), None)
    size = next((name for name in _SIZES if _is_count(said, name)), None)
    found: dict[str, Any] = {
        "total": _path(said, total) if total else None,
        "pages": _path(said, pages) if pages else None,
        "size_param": next((name for name in _SIZES if name in query), None),
    }
    told = said[size][1] if size else query.get(found["size_param"] or "", "")
    if str(told).isdecimal() and 0 < int(str(told)[:9]) <= 1_000_000:
        found["size"] = int(str(told)[:9])
        found["size_param"] = found["size_param"] or size
    for kind, params in (("page", _PAGE_PARAMS), ("offset", _OFFSET_PARAMS)):
        param = next((name for name in params if name in query), None)
        param = param or next((name for name in params if _is_count(said, name)), None)
        if param or (kind == "page" and (pages or _is_count(said, "current_page"))):
            start = query.get(param or "", "")
            found["start"] = int(start[:9]) if start.isdecimal() else None
            return ApiPagingKeys(kind=kind, param=param or "page", **found)  # type: ignore[arg-type]
    return None


def _is_count(said: Mapping[str, tuple[Any, Any]], name: str) -> bool:
    value = said.get(name, ((), None))[1]
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _path(said: Mapping[str, tuple[tuple[str, ...], Any]], name: str) -> str:
    return str(path_of_selectors((*said[name][0], name)))


def _named(answer: Any, names: tuple[str, ...] | None) -> list[tuple[tuple[str, ...], str, Any]]:
    """Members of the answer with one of these names, where such things stand; with None, all members."""
    found: list[tuple[tuple[str, ...], str, Any]] = []
    for place in _PLACES:
        holder = compile_path(str(path_of_selectors(place))).first(answer)
        if isinstance(holder, dict):
            for name in list(holder)[:200] if names is None else names:
                if name in holder and (
                    names is not None or not any(n == name for _, n, _ in found)
                ):
                    found.append((place, name, holder[name]))
    return found
