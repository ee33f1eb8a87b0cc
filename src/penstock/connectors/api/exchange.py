"""The exchange of a page: what is sent for it, with credentials, and what comes back, without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.connectors.api.credentials import NONE, Credentials, bearer_of, fixed, token_in
from penstock.connectors.api.keys import ApiKeys, ApiPagingKeys
from penstock.connectors.api.position import Position
from penstock.connectors.api.requests import (
    HTTP,
    PageRequest,
    credential_params,
    credentials_in,
    is_same_origin,
    request_of,
    with_query,
    without_query,
)
from penstock.connectors.contract import Gone, Place
from penstock.connectors.files.file_reader import read_file
from penstock.http.failures import FetchError, safe_url
from penstock.http.response import Response
from penstock.jobs.failures import Permanent
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

LARGEST_FILE = 16_000_000


class Exchange:
    """Asks for the pages of one source."""

    def __init__(self, keys: ApiKeys, place: Place) -> None:
        self._keys = keys
        self._place = place

    def query_secrets(self, ctx: Context) -> dict[str, str]:
        """Parameters that are sent, and are in no address."""
        url = {} if self.is_file else credentials_in(self._keys.url)
        return {**url, **credential_params(ctx.params), **fixed(self._keys.auth).query}

    @property
    def is_file(self) -> bool:
        return not self._keys.url.lower().startswith(HTTP)

    def address_of(self, url: str) -> str:
        if not self.is_file:
            return url
        return f"api://{self._place.source}/{url.removeprefix('./')}"

    async def page(
        self, ctx: Context, paging: ApiPagingKeys, here: Position, address: str
    ) -> Response:
        """The page at a position, stored under its address."""
        request = request_of(self._keys, ctx.params, paging, here)
        if self.is_file:
            return await self._file(ctx, request, address)

        async def bring(etag: str | None, last_modified: str | None) -> Response:
            if self._keys.since is not None:
                # What is stored there is the answer to another question.
                etag = last_modified = None
            return await self._ask(ctx, request, address, (etag, last_modified))

        return await ctx.exchange(address, bring)

    async def _file(self, ctx: Context, request: PageRequest, address: str) -> Response:
        path = request.url.partition("?")[0].removeprefix("./")

        async def bring(etag: str | None, last_modified: str | None) -> Response:
            try:
                body = await ctx.in_thread(
                    lambda: read_file(self._place.root, path, LARGEST_FILE, "skip")
                )
            except Gone:
                raise Permanent(f"there is no file {path}", cause="no file") from None
            ctx.spend(bytes=len(body))
            headers = {"content-type": "application/json"}
            return Response(address, address, 200, headers, body, ctx.now())

        return replace(await ctx.exchange(address, bring), url=path)

    async def _ask(
        self,
        ctx: Context,
        request: PageRequest,
        address: str,
        conditions: tuple[str | None, str | None],
    ) -> Response:
        """By OAuth2, a token that is refused is renewed once."""
        credentials = await self._credentials(ctx, request.url)
        try:
            return await self._send(ctx, request, address, conditions, credentials)
        except FetchError as error:
            auth = self._keys.auth
            is_token = auth is not None and auth.token_url and token_in(credentials)
            if error.status != 401 or auth is None or not is_token:
                raise
        renewed = await bearer_of(ctx, auth, refused=token_in(credentials))
        return await self._send(ctx, request, address, conditions, renewed)

    async def _credentials(self, ctx: Context, url: str) -> Credentials:
        """None for another origin than that of the source's own URL, whatever page leads there."""
        if not is_same_origin(url, self._keys.url):
            return NONE
        auth = self._keys.auth
        if auth is not None and auth.token_url:
            found = await bearer_of(ctx, auth)
        else:
            found = fixed(auth)
        return Credentials(found.headers, self.query_secrets(ctx))

    async def _send(
        self,
        ctx: Context,
        request: PageRequest,
        address: str,
        conditions: tuple[str | None, str | None],
        credentials: Credentials,
    ) -> Response:
        url = with_query(request.url, credentials.query)
        etag, last_modified = conditions
        options = FetchOptions(
            method="POST" if self._keys.is_post else None,
            headers={"Accept": "application/json", **credentials.headers},
            json=request.body,
            etag=etag,
            last_modified=last_modified,
        )
        try:
            response = await ctx.send(url, options)
        except FetchError as error:
            if credentials.query:
                error.url = safe_url(request.url)
                error.args = (f"{error.message}: {error.url}",)
            raise
        # Where it came from, as it may be written down.
        came_from = (
            address if response.url == url else without_query(response.url, credentials.query)
        )
        return replace(response, requested_url=address, url=came_from)
