"""Where a redirect leads, and what may be carried there: pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from yarl import URL

from penstock.http.addresses import Target, is_too_long, look_at
from penstock.http.failures import AddressRefused, FetchError
from penstock.http.reach import harmless

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OF_BODY = frozenset({"content-type", "content-length", "content-encoding", "content-language"})


@dataclass(frozen=True, slots=True)
class Hop:
    """The next request of a fetch."""

    method: str
    target: Target
    headers: dict[str, str]
    body: bytes | None = None


def follow(hop: Hop, status: int, location: str) -> Hop:
    """The request a redirect asks for.

    On any change of scheme, host or port it carries no credentials, and it does not get them back
    when the chain returns. A body is never sent on to another origin.
    """
    target = look_at(_joined(hop.target, location))
    if status == 303 or (status in (301, 302) and hop.method == "POST"):
        hop = _as_get(hop)
    if target.origin == hop.target.origin:
        return replace(hop, target=target)
    if hop.body is not None:
        raise FetchError("the redirect would send the body elsewhere", target.text, status, True)
    return replace(hop, target=target, headers=harmless(hop.headers))


def _as_get(hop: Hop) -> Hop:
    headers = {name: value for name, value in hop.headers.items() if name.lower() not in _OF_BODY}
    method = "HEAD" if hop.method == "HEAD" else "GET"
    return replace(hop, method=method, body=None, headers=headers)


def _joined(target: Target, location: str) -> str:
    if not location or is_too_long(location):
        raise FetchError("a redirect without a usable Location", target.text, None, True, "data")
    try:
        return str(target.url.join(URL(location.strip())))
    except (ValueError, UnicodeError):
        raise AddressRefused("a redirect to something that is no URL", target.text) from None
