"""Credentials: what a request carries beside its address, and the tokens of OAuth2 clients.

They are in memory only, and go to the origin of the source's own `url` alone.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from penstock.connectors.api.keys import ApiAuthKeys
from penstock.http.failures import FetchError, safe_url
from penstock.jobs.failures import AuthFailed
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

# A token is renewed so long before it ends; one that names no end holds for this long.
EARLY_S = 30.0
USUAL_S = 300.0
LONGEST_S = 86_400.0


class Credentials(msgspec.Struct, frozen=True):
    """What is added to a request as it is sent."""

    headers: dict[str, str] = {}
    query: dict[str, str] = {}

    def __repr__(self) -> str:
        return "Credentials(***)"


NONE = Credentials()


def fixed(auth: ApiAuthKeys | None) -> Credentials:
    """Those that the configuration has; none for OAuth2, whose token is asked for."""
    if auth is None:
        return NONE
    if auth.bearer is not None:
        return Credentials({"Authorization": f"Bearer {auth.bearer}"})
    if auth.header is not None:
        return Credentials({auth.header: auth.value or ""})
    if auth.query is not None:
        return Credentials({}, {auth.query: auth.value or ""})
    if auth.user is not None:
        return Credentials({"Authorization": _basic(auth.user, auth.password or "")})
    return NONE


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class _Token:
    """The token that the jobs of a source share in one process."""

    def __init__(self) -> None:
        self.value = ""
        self.ends_at = 0.0
        self.lock = asyncio.Lock()


_tokens: WeakKeyDictionary[Any, dict[tuple[str, ...], _Token]] = WeakKeyDictionary()


async def bearer_of(ctx: Context, auth: ApiAuthKeys, refused: str = "") -> Credentials:
    """The token of an OAuth2 client, asked for once; again if it has ended, or if it was `refused`."""
    token = _token(ctx.source.key, auth)
    async with token.lock:
        if not token.value or token.value == refused or ctx.now() >= token.ends_at:
            await _renew(ctx, auth, token)
        return Credentials({"Authorization": f"Bearer {token.value}"})


def token_in(credentials: Credentials) -> str:
    return credentials.headers.get("Authorization", "").removeprefix("Bearer ")


def _token(source: str, auth: ApiAuthKeys) -> _Token:
    known = _tokens.setdefault(asyncio.get_running_loop(), {})
    parts = (auth.token_url, auth.client_id, auth.client_secret, auth.scope, auth.audience)
    return known.setdefault((source, *(part or "" for part in parts)), _Token())


async def _renew(ctx: Context, auth: ApiAuthKeys, token: _Token) -> None:
    token.value = ""
    url = auth.token_url or ""
    asked = {"grant_type": "client_credentials", "scope": auth.scope, "audience": auth.audience}
    response = await _asked(ctx, url, auth, asked)
    try:
        found = msgspec.json.decode(response.body)
    except (ValueError, RecursionError):
        found = None
    value = found.get("access_token") if isinstance(found, dict) else None
    if not isinstance(value, str) or not value or not value.isprintable():
        raise AuthFailed(
            f"there is no access_token in the answer of {safe_url(url)}", cause="no token"
        )
    token.value = value
    token.ends_at = ctx.now() + _lasts_s(found)


async def _asked(ctx: Context, url: str, auth: ApiAuthKeys, asked: Mapping[str, Any]) -> Response:
    """By HTTP Basic, as RFC 6749 wants it; of a server that does not take that, by the form."""
    headers = {"Accept": "application/json"}
    basic = {**headers, "Authorization": _basic(auth.client_id or "", auth.client_secret or "")}
    form = {**asked, "client_id": auth.client_id, "client_secret": auth.client_secret}
    try:
        return await ctx.send(url, FetchOptions(headers=basic, data=asked))
    except FetchError as error:
        if error.status not in (400, 401):
            raise
    try:
        return await ctx.send(url, FetchOptions(headers=headers, data=form))
    except FetchError as error:
        if error.status in (400, 401, 403):
            raise AuthFailed(
                f"{safe_url(url)} gives no token to this client (status {error.status})",
                cause="no token",
            ) from None
        raise


def _lasts_s(answer: Mapping[str, Any]) -> float:
    found = answer.get("expires_in")
    if isinstance(found, str) and found.isdecimal():
        found = int(found[:9])
    if isinstance(found, bool) or not isinstance(found, (int, float)) or found <= 0:
        return USUAL_S
    return min(LONGEST_S, max(1.0, found - EARLY_S))
