"""Paging: where a page leads to, and how pages that lead in a circle are recognised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import msgspec

from penstock.connectors.api.answers import kind_of
from penstock.connectors.api.keys import ApiPagingKeys
from penstock.connectors.api.position import Position, digest
from penstock.connectors.api.requests import following, param_of
from penstock.connectors.jsonpath import JsonPath, compile_path
from penstock.jobs.failures import BadData

# So many pages are asked for side by side; the last of them tells whether there are more.
WAVE = 1_000
NUMBERED = ("page", "offset")
_LINK = re.compile(r"<([^<>]{1,8000})>([^<]{0,1000})")
_REL_NEXT = re.compile(
    r";\s{0,9}rel\s{0,9}=\s{0,9}(?:\"(?:[^\"]{0,200}\s)?next(?:\s[^\"]{0,200})?\"|next\b)",
    re.IGNORECASE,
)
_TOTALS = ("x-total-count", "x-total", "x-wp-total")
_PAGE_TOTALS = ("x-total-pages", "x-wp-totalpages")
_LARGEST = 1_000_000_000_000


class Page(msgspec.Struct, frozen=True):
    """A page that was read."""

    answer: Any
    records: list[Any]
    # The fingerprints of the records.
    marks: list[str]
    records_at: JsonPath
    headers: Mapping[str, str]
    # Where the page is, to which relative URLs refer.
    url: str


def follow(
    paging: ApiPagingKeys,
    page: Page,
    here: Position,
    *,
    side_by_side: bool,
    secrets: Mapping[str, Any],
) -> list[Position]:
    """The pages that this one leads to; none, if it is the last."""
    content = digest(page.marks) if page.marks else ""
    if paging.kind == "none" or is_repetition(paging, page, here, content):
        return []
    if paging.kind in NUMBERED:
        return list(_numbered(paging, page, here, content, side_by_side=side_by_side))
    found = _next(paging, page, secrets)
    if found is None:
        return []
    if str(found) in (str(here.at), here.mark.at):
        raise BadData(
            f"the pages go in a circle: the next one after {here.name} was read before",
            cause="a circle",
        )
    return [_after(here, here.number + 1, found, content)]


def is_repetition(paging: ApiPagingKeys, page: Page, here: Position, content: str) -> bool:
    """Whether the page has the very records of another one; where that can't be the end, it is BadData.

    Some answer what is behind the last page with the last page. Where a page has a single record, that may
    have moved there while another was added: it takes a second repetition, or a page shorter than others.
    """
    if not content or content not in (here.before, here.first, here.mark.content):
        return False
    is_single = len(page.records) == 1
    if is_single and len(page.records) >= here.full and content != here.mark.content:
        return False
    if paging.kind in NUMBERED and content == here.before and (here.number > 2 or is_single):
        return True
    parameter = param_of(paging)
    what = f": does the API know the parameter {parameter!r}?" if parameter else ""
    raise BadData(f"{here.name} has the same records as one before it{what}", cause="the same page")


def _after(here: Position, number: int, at: int | str, content: str) -> Position:
    return msgspec.structs.replace(
        here,
        number=number,
        at=at,
        first=here.first or content,
        before=content,
        mark=here.mark.moved("" if here.at is None else str(here.at), content),
        up_to=0,
    )


def _numbered(
    paging: ApiPagingKeys, page: Page, here: Position, content: str, *, side_by_side: bool
) -> Iterator[Position]:
    if here.number < here.up_to or not page.records:
        return
    full = here.full or len(page.records)
    last = _last_number(paging, page, here, full)
    if _is_last(paging, page, here, last):
        return
    many = min(last - here.number, WAVE) if side_by_side and last is not None else 1
    many = max(1, many)
    step = 1 if paging.kind == "page" else full if many > 1 else len(page.records)
    at = _number_of(here, paging)
    here = msgspec.structs.replace(here, full=full)
    for ahead in range(1, many + 1):
        made = _after(here, here.number + ahead, at + ahead * step, content)
        if many > 1:
            # Side by side, what is compared is the first page alone.
            made = msgspec.structs.replace(made, up_to=here.number + many, before="")
        yield made


def _is_last(paging: ApiPagingKeys, page: Page, here: Position, last: int | None) -> bool:
    if paging.more is not None:
        return not compile_path(paging.more).first(page.answer)
    if last is not None:
        return here.number >= last
    # The first page tells nothing: an API may give fewer records than it was asked for.
    is_short = len(page.records) < min(paging.size or 0, here.full)
    return paging.stop == "short" and is_short


def _number_of(here: Position, paging: ApiPagingKeys) -> int:
    return here.at if isinstance(here.at, int) else _start(paging)


def _last_number(paging: ApiPagingKeys, page: Page, here: Position, full: int) -> int | None:
    """The number of the last page, if the answer tells."""
    pages = _count(paging.pages, page, _PAGE_TOTALS)
    if pages is not None:
        return pages
    total = _count(paging.total, page, _TOTALS)
    if total is None:
        return None
    if paging.kind == "offset":
        # What is left after this page, by the offset itself: pages may be shorter than they were asked to be.
        left = total - (_number_of(here, paging) - _start(paging)) - len(page.records)
        return here.number + max(0, ceil(left / full))
    return max(1, ceil(total / full))


def _count(path: str | None, page: Page, headers: tuple[str, ...]) -> int | None:
    found = None if path is None else compile_path(path).first(page.answer)
    if path is None:
        found = next((page.headers[name] for name in headers if name in page.headers), None)
    if isinstance(found, str) and found.strip().isdecimal():
        found = int(found.strip()[:15])
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if 0 <= found < _LARGEST else None


def _start(paging: ApiPagingKeys) -> int:
    if paging.start is not None:
        return paging.start
    return 1 if paging.kind == "page" else 0


def first_at(paging: ApiPagingKeys) -> int | None:
    """What the first request says of the page; nothing, where the start is the usual one."""
    return paging.start if paging.kind in NUMBERED else None


def _next(paging: ApiPagingKeys, page: Page, secrets: Mapping[str, Any]) -> str | int | None:
    """The next cursor or URL."""
    if paging.more is not None and not compile_path(paging.more).first(page.answer):
        return None
    if paging.kind == "link":
        found: Any = next_link(page.headers.get("link", ""))
    elif paging.kind == "relay":
        found = _relay(paging, page)
    elif paging.last is not None:
        found = compile_path(paging.last).first(page.records[-1]) if page.records else None
    else:
        found = compile_path(paging.next or "$.next").first(page.answer)
    if found is None or found is False or found == "":
        return None
    if isinstance(found, bool) or not isinstance(found, str | int):
        what = kind_of(found)
        raise BadData(f"the next cursor is {what}, not text or a number", cause="next page")
    if paging.kind in ("link", "next"):
        return following(page.url, str(found), secrets)
    return found


def _relay(paging: ApiPagingKeys, page: Page) -> Any:
    info = compile_path(paging.next) if paging.next else page_info_at(page.records_at)
    found = info.first(page.answer)
    if not isinstance(found, dict):
        raise BadData(
            f"the answer has no {info}: ask for pageInfo {{ hasNextPage endCursor }} in the query",
            cause="no pageInfo",
        )
    return found.get("endCursor") if found.get("hasNextPage") else None


def page_info_at(records_at: JsonPath) -> JsonPath:
    """Beside the list of the records."""
    return records_at.stem.above.below("pageInfo")


def next_link(header: str) -> str:
    """The target of rel="next" in a Link header; empty if there is none."""
    for found in _LINK.finditer(header[:20_000]):
        if _REL_NEXT.search(found[2].partition(", <")[0]):
            return found[1]
    return ""
