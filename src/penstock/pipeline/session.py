"""Sessions: a login that the jobs of a source share in one process, and renew when it has expired.

Cookies and headers of a session are in memory only, and go back only where they came from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from penstock.errors import PipelineError
from penstock.http.addresses import look_at
from penstock.http.cookies import MOST_COOKIES, Cookie, names_for
from penstock.http.failures import FetchError
from penstock.jobs.failures import AuthFailed
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

Login = Callable[["Context"], Awaitable[Any]]
# Who asks while a login has just been refused is refused, too: the password will not be better.
REFUSED_FOR_S = 60.0


class _State:
    """What the jobs of one source share. `number` counts logins; 0 before the first."""

    def __init__(self) -> None:
        self.cookies: dict[tuple[str, str, str], Cookie] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.lock = asyncio.Lock()
        self.number = 0
        self.is_stale = False
        self.refusal = ""
        self.refused_at = 0.0
        self.by: asyncio.Task[Any] | None = None

    def forget(self) -> None:
        self.cookies.clear()
        self.headers.clear()


_states: WeakKeyDictionary[Any, dict[str, _State]] = WeakKeyDictionary()


def _state_of(source: str) -> _State:
    known = _states.setdefault(asyncio.get_running_loop(), {})
    if source not in known:
        known[source] = _State()
    return known[source]


class Session:
    """The session of a source, as a step sees it."""

    __slots__ = ("_ctx", "_login", "_state")

    def __init__(self, ctx: Context, login: Login | None) -> None:
        self._ctx = ctx
        self._login = login
        self._state = _state_of(ctx.source.key)

    def __repr__(self) -> str:
        return f"Session({self._ctx.source.key!r})"

    def cookies(self, url: str) -> dict[str, str]:
        """The cookies that a request to this URL would carry."""
        return names_for(self._state.cookies.values(), url, self._ctx.now())

    def set_header(self, url: str, name: str, value: str) -> None:
        """Send this header, such as a token, with every request of the session to the origin of this URL."""
        self._state.headers.setdefault(look_at(url).origin, {})[name] = value

    def clear(self) -> None:
        """Forget cookies and headers; the next fetch logs in again."""
        self._state.forget()
        self._state.is_stale = True

    async def fetch(self, url: str, **options: Any) -> Response:
        """As `ctx.fetch`, with the cookies and headers of the session, after a login if there is one.

        An answer of 401 or 403 renews the login, once.
        """
        asked = FetchOptions(**options)
        if self._is_in_login or not self._ctx.in_progress.run.policy.fetches:
            return await self._send(url, asked)
        number = await self._signed_in()
        try:
            return await self._send(url, asked)
        except FetchError as error:
            if self._login is None or error.kind != "auth":
                raise
        if number == self._state.number:
            self._state.is_stale = True
        await self._signed_in()
        return await self._send(url, asked)

    @property
    def _is_in_login(self) -> bool:
        return self._state.by is not None and self._state.by is asyncio.current_task()

    async def _send(self, url: str, asked: FetchOptions) -> Response:
        state = self._state
        headers = state.headers.get(look_at(url).origin)
        cookies = list(state.cookies.values())
        response = await self._ctx.fetch_in_session(
            url, asked, cookies, headers or {}, is_aside=self._is_in_login
        )
        for cookie in response.cookies:
            state.cookies[cookie.place] = cookie
        while len(state.cookies) > MOST_COOKIES:
            del state.cookies[next(iter(state.cookies))]
        return response

    async def _signed_in(self) -> int:
        """The number of the login that holds; one job performs it, and the others wait."""
        state = self._state
        if self._login is None or (state.number and not state.is_stale):
            return state.number
        async with state.lock:
            if state.number and not state.is_stale:
                return state.number
            if state.refusal and self._ctx.now() - state.refused_at < REFUSED_FOR_S:
                raise AuthFailed(state.refusal)
            await self._log_in(self._login)
        return state.number

    async def _log_in(self, login: Login) -> None:
        state = self._state
        state.forget()
        state.by = asyncio.current_task()
        try:
            await login(self._ctx)
        except Exception as error:
            if isinstance(error, AuthFailed) or getattr(error, "kind", None) == "auth":
                state.refusal, state.refused_at = "the login was refused", self._ctx.now()
            raise
        finally:
            state.by = None
        state.number, state.is_stale, state.refusal = state.number + 1, False, ""


def checked_login(function: Any) -> Login:
    if not callable(function) or not asyncio.iscoroutinefunction(function):
        raise PipelineError("@pipeline.login needs 'async def login(ctx)'")
    found: Login = function
    return found
