"""The request for a page: its URL, its body, and the address that it is stored under."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import msgspec

from penstock.connectors.api.keys import ApiKeys, ApiPagingKeys
from penstock.connectors.api.position import Position, digest
from penstock.http.addresses import look_at
from penstock.http.failures import AddressRefused
from penstock.jobs.failures import BadData

HTTP = ("http://", "https://")
# A parameter of such a name is a credential: it is sent, and is in no address.
_CREDENTIAL = re.compile(
    r"(.*[._-])?(api[_-]?key|key|token|secret|password|passwd|pwd|auth|signature|sig)",
    re.IGNORECASE,
)
_PARAMS = {"page": "page", "offset": "offset", "cursor": "cursor", "relay": "after"}
_SIZES = {"page": "per_page", "relay": "first"}
LONGEST_SHOWN = 300


class PageRequest(msgspec.Struct, frozen=True):
    """What is sent, without credentials."""

    url: str
    address: str
    body: Any = None


def param_of(paging: ApiPagingKeys) -> str:
    return paging.param or _PARAMS.get(paging.kind, "")


def size_param_of(paging: ApiPagingKeys) -> str:
    return paging.size_param or _SIZES.get(paging.kind, "limit")


def request_of(
    keys: ApiKeys, params: Mapping[str, Any], paging: ApiPagingKeys, position: Position
) -> PageRequest:
    """The request for the page at a position."""
    if paging.kind in ("link", "next") and isinstance(position.at, str):
        return _stored(keys, position.at, position, _body(keys))
    query, body = _plain_params(params), _body(keys)
    url = without_query(keys.url, credentials_in(keys.url))
    sent: list[tuple[str, str | None, Any]] = []
    if paging.size is not None:
        sent.append((size_param_of(paging), paging.place, paging.size))
    if position.at is not None:
        sent.append((param_of(paging), paging.place, position.at))
    if keys.since is not None and position.since:
        sent.append((keys.since.param, keys.since.place, position.since))
    for name, place, value in sent:
        if place is None:
            place = "variable" if keys.graphql else "body" if keys.is_post else "query"
        if place == "query":
            query[name] = value
        else:
            _put(body, name, value, is_variable=place == "variable")
    return _stored(keys, with_query(url, query), position, body)


def _stored(keys: ApiKeys, url: str, position: Position, body: Any) -> PageRequest:
    """With the address: the URL itself, for a GET that is the same in every run."""
    if not keys.is_post and keys.since is None:
        return PageRequest(url, url, None)
    label = f"{'since/' if keys.since else ''}{digest(_body(keys))[:8] + '/' if body else ''}"
    # Of a walk since some time, what is asked for is another in each run; of a cursor, the number is enough.
    where = position.number if keys.since else position.at
    base = without_query(keys.url, credentials_in(keys.url)) if keys.since else url
    shown = "" if where is None else str(where)[:LONGEST_SHOWN]
    return PageRequest(url, f"{base.partition('#')[0]}#{label}{shown}", body)


def _body(keys: ApiKeys) -> Any:
    if keys.graphql is not None:
        variables = copy.deepcopy(keys.graphql.variables)
        return {"query": keys.graphql.query, "variables": variables}
    if not keys.is_post:
        return None
    return copy.deepcopy(keys.body or {})


def _put(body: Any, name: str, value: Any, *, is_variable: bool) -> None:
    """At a name in the body, or at a path of names: `page.after`."""
    if body is None:
        return
    at = body.setdefault("variables", {}) if is_variable else body
    *above, last = name.split(".")
    for each in above:
        if not isinstance(at.get(each), dict):
            at[each] = {}
        at = at[each]
    at[last] = value


def _plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The params of the source that are no credentials."""
    return {name: value for name, value in params.items() if not _CREDENTIAL.fullmatch(name)}


def credential_params(params: Mapping[str, Any]) -> dict[str, str]:
    """The params of the source that are credentials, by their names."""
    return {name: str(value) for name, value in params.items() if _CREDENTIAL.fullmatch(name)}


def credentials_in(url: str) -> dict[str, str]:
    """Credentials in the query of an address, by their names."""
    return credential_params(dict(parse_qsl(urlsplit(url).query, True)))


def with_query(url: str, params: Mapping[str, Any]) -> str:
    """The URL with these in its query, in place of those of the same names."""
    given = {name: _words(value) for name, value in params.items() if value is not None}
    if not given:
        return url
    parts = urlsplit(url)
    kept = [pair for pair in parse_qsl(parts.query, True) if pair[0] not in given]
    query = urlencode([*kept, *given.items()], doseq=True)
    return urlunsplit(parts._replace(query=query))


def without_query(url: str, names: Mapping[str, Any]) -> str:
    """The URL without these parameters; as it is, if it has none of them."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, True)
    kept = [pair for pair in pairs if pair[0] not in names]
    if len(kept) == len(pairs):
        return url
    return urlunsplit(parts._replace(query=urlencode(kept)))


def _words(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    if isinstance(value, (list, tuple)):
        return [_words(each) for each in value]
    return value


def following(base: str, found: str, secrets: Mapping[str, Any]) -> str:
    """The URL of the next page as it may be written down: absolute, and without credentials that it repeats.

    Behind a proxy, an API often names itself by http: the scheme stays the one that was configured.
    """
    try:
        url = urljoin(base, found.strip()[:8000])
        here, there = urlsplit(base), urlsplit(url)
        is_downgraded = (here.scheme, there.scheme) == ("https", "http")
        if is_downgraded and here.hostname == there.hostname and there.port in (None, 80):
            url = urlunsplit(there._replace(scheme="https", netloc=here.netloc))
        return without_query(url, secrets).partition("#")[0]
    except ValueError:
        raise BadData(f"the next page is at no URL: {found!r:.100}", cause="next page") from None


def is_same_origin(one: str, other: str) -> bool:
    try:
        return look_at(one).origin == look_at(other).origin
    except AddressRefused:
        return False
