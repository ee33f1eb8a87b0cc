"""The answer of an API: JSON, the records in it, and what it says where there are none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.jsonpath import JsonPath, compile_path, path_of_selectors
from penstock.http.failures import safe_url
from penstock.jobs.failures import AuthFailed, BadData, Transient

if TYPE_CHECKING:
    from penstock.http.response import Response

_HTML = re.compile(
    rb"\s{0,99}(?:<!--.{0,999}?-->\s{0,99})?<(!doctype html|html|head|body)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
# Lists of records are called so, where an answer has several lists.
USUAL = (
    "data", "items", "results", "records", "entries", "values", "value", "nodes", "edges", "hits",
    "objects", "rows", "content", "list", "resources", "elements", "docs",
)  # fmt: skip
_DEEPEST = 6
_MOST_NAMES = 1000
_REFUSED = frozenset({"UNAUTHENTICATED", "FORBIDDEN", "UNAUTHORIZED", "ACCESS_DENIED"})
_BUSY = frozenset({"THROTTLED", "RATE_LIMITED", "RATELIMITED", "TOO_MANY_REQUESTS"})


def decoded(response: Response) -> Any:
    """The answer as JSON; None if it is empty. What is no JSON is BadData."""
    body = response.body.removeprefix(b"\xef\xbb\xbf")
    if not body.strip():
        return None
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        where = safe_url(response.url)
        if _HTML.match(body[:4000]):
            raise BadData(
                f"the API answered with an HTML page, not with JSON: {where}: is this its address, and does "
                "it want no login?",
                cause="HTML instead of JSON",
            ) from None
        raise BadData(f"the answer is not JSON ({error}): {where}", cause="not JSON") from None


def records_of(answer: Any, path: JsonPath) -> list[Any]:
    """The records of an answer: the list at a path, or all that the path selects."""
    if answer is None:
        return []
    if not path.is_singular:
        stem = path.stem
        if stem.first(answer, _NOTHING) is _NOTHING:
            raise no_records(answer, stem)
        return path.find(answer)
    found = path.first(answer, _NOTHING)
    if found is _NOTHING:
        raise no_records(answer, path)
    if found is None:
        return []
    if isinstance(found, list):
        return found
    what = f"an object; for its values, write records: {path}.*"
    raise BadData(
        f"{path} is {what if isinstance(found, dict) else kind_of(found)}, not a list of records",
        cause="no records",
    )


_NOTHING = object()


def no_records(answer: Any, path: JsonPath) -> BadData:
    """What is said where the list is not: the API's own error, else the names that there are."""
    said = error_text(answer)
    if said:
        return BadData(f"the answer has no {path}, it says: {said}", cause="an error of the API")
    if not isinstance(answer, dict):
        return BadData(f"the answer has no {path}: it is {kind_of(answer)}", cause="no records")
    names = ", ".join(map(str, list(answer)[:10])) or "nothing"
    return BadData(f"the answer has no {path}: it has {names}", cause="no records")


def error_text(answer: Any) -> str:
    """What an answer says of an error, in one short line; empty if it says nothing."""
    if not isinstance(answer, dict):
        return ""
    for name in ("error", "errors", "error_description", "message", "detail", "title"):
        found = answer.get(name)
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, dict):
            found = next(
                (found[n] for n in ("message", "detail", "title", "code") if n in found), ""
            )
        if isinstance(found, str | int) and found and not isinstance(found, bool):
            return " ".join(str(found)[:300].split())[:200]
    return ""


def refuse_errors(answer: Any) -> None:
    """Raise what a GraphQL answer says of errors, by the class that it is of."""
    errors = answer.get("errors") if isinstance(answer, dict) else None
    if not isinstance(errors, list) or not errors:
        return
    codes = set()
    for each in errors[:20]:
        about = each.get("extensions") if isinstance(each, dict) else None
        for holder in (each, about):
            if isinstance(holder, dict):
                codes |= {str(holder.get(name, "")).upper() for name in ("code", "type")}
    text = (
        f"the API answered with an error: {error_text({'errors': errors}) or 'without a message'}"
    )
    if codes & _REFUSED:
        raise AuthFailed(text, cause="refused by the API")
    if codes & _BUSY:
        raise Transient(text, cause="throttled by the API")
    raise BadData(text, cause="an error of the API")


def find_records(answer: Any) -> JsonPath:
    """The list of records: the answer itself, or the only list of objects in it."""
    if isinstance(answer, list) or answer is None:
        return compile_path("$")
    lists = _lists(answer)
    for chosen in (_full(lists), [each for each in lists if not each[1]]):
        if chosen:
            return _shallowest(chosen)
    if lists:
        return lists[0][0]  # a list of something else: each of it is named in its error
    said = error_text(answer)
    if said:
        raise BadData(f"the answer has no records, it says: {said}", cause="an error of the API")
    raise BadData(
        "the answer has no list of records; where is it? records: $.path.to.list",
        cause="no records",
    )


def _lists(answer: Any) -> list[tuple[JsonPath, list[Any]]]:
    """The lists in an answer, the shallow ones first; not those inside of lists."""
    found: list[tuple[JsonPath, list[Any]]] = []
    level: list[tuple[tuple[str, ...], Any]] = [((), answer)]
    for _ in range(_DEEPEST):
        below: list[tuple[tuple[str, ...], Any]] = []
        for path, value in level:
            for name, each in list(value.items())[:_MOST_NAMES] if isinstance(value, dict) else ():
                if isinstance(each, list):
                    found.append((path_of_selectors((*path, name)), each))
                elif isinstance(each, dict) and len(below) < _MOST_NAMES:
                    below.append(((*path, name), each))
        level = below
    return found


def _full(lists: list[tuple[JsonPath, list[Any]]]) -> list[tuple[JsonPath, list[Any]]]:
    return [each for each in lists if each[1] and isinstance(each[1][0], dict)]


def _shallowest(lists: list[tuple[JsonPath, list[Any]]]) -> JsonPath:
    depth = min(len(path.selectors) for path, _ in lists)
    nearest = [each for each in lists if len(each[0].selectors) == depth]
    if len(nearest) > 1:
        usual = [each for each in nearest if each[0].selectors[-1] in USUAL]
        if len(usual) != 1:
            names = ", ".join(str(path) for path, _ in nearest[:5])
            raise BadData(
                f"the answer has several lists: {names}; which has the records? records: {nearest[0][0]}",
                cause="several lists",
            )
        nearest = usual
    [(path, values)] = nearest
    first = values[0] if values else None
    if path.selectors[-1] == "edges" and (
        not values or (isinstance(first, dict) and "node" in first)
    ):
        return compile_path(f"{path}[*].node")
    return path


def kind_of(value: Any) -> str:
    """What a JSON value is, in a word."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    for kind, word in (((int, float), "a number"), (str, "text"), (list, "a list")):
        if isinstance(value, kind):
            return word
    return "an object"
