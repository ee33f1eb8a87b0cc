"""Access tokens for a login by OAuth2: given, or asked for and kept until shortly before they end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.http.failures import FetchError
from penstock.jobs.failures import AuthFailed
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.connectors.imap.keys import ImapKeys, OAuthKeys
    from penstock.pipeline.context import Context

# A token is asked for anew so long before it ends.
EARLY_S = 60.0
USUAL_S = 3_600.0


class Tokens:
    """The tokens of one source in one process; they are in no file and no snapshot."""

    def __init__(self, keys: ImapKeys) -> None:
        self._keys = keys
        self._token = ""
        self._until = 0.0

    async def current(self, ctx: Context) -> str:
        oauth = self._keys.oauth
        if oauth is None or oauth.token:
            return "" if oauth is None else oauth.token
        if ctx.now() >= self._until:
            answer = await self._asked(ctx, oauth)
            self._token, lasts_s = _read(answer)
            self._until = ctx.now() + lasts_s - EARLY_S
        return self._token

    async def _asked(self, ctx: Context, oauth: OAuthKeys) -> bytes:
        fields: dict[str, Any] = {
            "client_id": oauth.client_id,
            "client_secret": oauth.client_secret,
            "refresh_token": oauth.refresh_token,
            "scope": oauth.scope,
            "grant_type": "refresh_token" if oauth.refresh_token else "client_credentials",
        }
        form = {name: value for name, value in fields.items() if value}
        try:
            return (await ctx.send(oauth.url, FetchOptions(data=form))).body
        except FetchError as error:
            if error.status in (400, 401, 403):
                words = f"no token: the server of oauth.url answers {error.status}"
                raise AuthFailed(f"{words}; check the client and the refresh token") from None
            raise


def _read(answer: bytes) -> tuple[str, float]:
    try:
        found = msgspec.json.decode(answer)
        token, lasts_s = found["access_token"], float(found.get("expires_in") or USUAL_S)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise AuthFailed("no token: the server of oauth.url answers something else") from None
    if not isinstance(token, str) or not token:
        raise AuthFailed("no token: the server of oauth.url answers something else")
    return token, lasts_s
