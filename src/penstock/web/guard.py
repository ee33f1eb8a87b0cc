"""The guard: every request passes it before any route is looked at.

It checks the host and the origin, finds out who sends the request, bounds its body in size and time, asks
for a CSRF token where a cookie alone would do, and sets the headers that every answer has.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request

from penstock.app.verbs.problems import Problem, problem_of
from penstock.errors import StoreError
from penstock.web.body import Body
from penstock.web.pages import database_page, refused_page, wants_page
from penstock.web.problem_response import problem_response
from penstock.web.sessions import Session

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from penstock.web.access import Access
    from penstock.web.origins import Origin
    from penstock.web.settings import WebSettings

# A stream that is open asks this often, when it has something to send, whether its reader is still let in.
AGAIN_S = 5.0
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
CSRF_HEADER, CSRF_FIELD = "X-CSRF-Token", "csrf"
FORM = "application/x-www-form-urlencoded"
# Stands for a slash within a segment of a path. No path that comes in has one.
INNER_SLASH = "\x1f"
# Whoever has not logged in may see these.
OPEN_PATHS = ("/login", "/healthz")
STATIC = "/static/"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
HSTS = "max-age=31536000"


class Guard:
    """Around the whole application: a route that is added tomorrow is behind it, too."""

    def __init__(self, app: ASGIApp, settings: WebSettings, access: Access) -> None:
        self._app = app
        self._most_bytes = settings.max_body_bytes
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        sending = _Sending(send)
        body = Body(receive, self._most_bytes)
        try:
            await self._check(scope, body, sending)
        except Problem as problem:
            await self._refuse(problem, scope, body, sending)
            return
        except StoreError as error:
            await self._refuse(problem_of(error), scope, body, sending)
            return
        try:
            await self._app(scope, body, sending)
        except Problem as problem:
            # The body broke off or was too large while a route read it.
            if sending.has_begun:
                raise
            await self._refuse(problem, scope, body, sending)
        except _LoggedOut:
            await sending.end()

    async def _check(self, scope: Scope, body: Body, sending: _Sending) -> None:
        headers = Headers(scope=scope)
        _refuse_control_characters(scope)
        scope["path"] = path_in_segments(scope)
        origin = self._known_origin(headers, scope)
        sending.is_secure = origin.is_secure
        _refuse_other_origins(headers, scope, self._access.origins.is_same, origin)
        body.expect(headers.get("Content-Length"))
        state = scope.setdefault("state", {})
        state.update(origin=origin, identity=None, csrf="", session=None)
        request = Request(scope)
        session = self._access.session_of(request)
        if session is not None and not await self._access.is_valid(session.identity):
            session = None
        if session is not None:
            state.update(identity=session.identity, csrf=session.csrf, session=session)
            await _require_csrf(scope, headers, body, session)
        elif "Authorization" in headers:
            state["identity"] = await self._access.bearer(request)
        sending.may_go_on = lambda: self._may_go_on(request)
        if state["identity"] is None and not _is_open(scope["path"]):
            raise Problem(
                401,
                "login_needed",
                "This needs a session or a token.",
                "send `Authorization: Bearer TOKEN`; `penstock token create` makes one",
                headers={"WWW-Authenticate": "Bearer"},
            )

    async def _may_go_on(self, request: Request) -> bool:
        """Whether who asked is still let in: a stream may have been open for hours."""
        identity = request.state.identity
        if identity is None:
            return True
        if request.state.session is not None and self._access.session_of(request) is None:
            return False
        return await self._access.is_valid(identity)

    def _known_origin(self, headers: Headers, scope: Scope) -> Origin:
        hosts = headers.getlist("Host")
        server = scope.get("server")
        at = (str(server[0]), int(server[1])) if server and server[1] else None
        found = self._access.origins.of_host(hosts[0], at) if len(hosts) == 1 else None
        if found is None:
            raise Problem(
                421,
                "unknown_host",
                "This server is not known under this host name.",
                "`penstock web --origin https://NAME` makes another name known",
            )
        return found

    async def _refuse(self, problem: Problem, scope: Scope, receive: Any, send: _Sending) -> None:
        answer: Response = problem_response(problem)
        if wants_page(scope):
            if problem.code == "login_needed":
                answer = self._access.login_redirect(scope)
            elif problem.status == 503:
                answer = database_page()
            else:
                answer = refused_page(problem)
        await answer(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(STATIC)


def _refuse_control_characters(scope: Scope) -> None:
    path: str = scope["path"]
    if not path.isprintable() or "\\" in path:
        raise Problem(400, "bad_path", "The path has characters that no path here has.")


def path_in_segments(scope: Scope) -> str:
    """The path of an API call, in which a `/` within a segment (`%2F`) is not taken for its end."""
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or b""
    if not path.startswith("/api/") or b"%2" not in raw:
        return path
    segments = raw.decode("ascii", "replace").split("/")
    return "/".join(unquote(each).replace("/", INNER_SLASH) for each in segments)


def _refuse_other_origins(headers: Headers, scope: Scope, is_same: Any, origin: Origin) -> None:
    given, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
    is_safe = scope["method"] in SAFE_METHODS
    is_navigation = is_safe and headers.get("Sec-Fetch-Mode") == "navigate"
    # Under `Referrer-Policy: no-referrer` a browser sends `null` with our own forms, too; no page can set
    # the other header.
    is_own_form = given == "null" and headers.get("Sec-Fetch-Site") == "same-origin"
    if given is not None and not is_own_form and not is_same(given, origin):
        raise Problem(403, "other_origin", "Requests from other origins are refused.")
    if site not in ("none", "same-origin") and not is_navigation:
        raise Problem(403, "other_origin", "Requests from other origins are refused.")


async def _require_csrf(scope: Scope, headers: Headers, body: Body, session: Session) -> None:
    """A cookie alone changes nothing: a page of ours has put its session's token beside it."""
    if scope["method"] in SAFE_METHODS:
        return
    if headers.get("Origin") is None and headers.get("Sec-Fetch-Site") != "same-origin":
        raise Problem(403, "no_origin", "A browser's request must say where it comes from.")
    given = headers.get(CSRF_HEADER)
    if given is None and headers.get("Content-Type", "").partition(";")[0].strip() == FORM:
        fields = parse_qs((await body.whole()).decode("utf-8", "replace"), max_num_fields=1_000)
        given = next(iter(fields.get(CSRF_FIELD, ())), None)
    if given is None or not session.has_csrf(given):
        raise Problem(
            403, "csrf", "The form is not from this session.", "load the page again, then repeat it"
        )


class _LoggedOut(Exception):
    """Whoever reads a stream is no longer let in."""


class _Sending:
    """Hands messages on, with the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_secure = False
        self.has_begun = False
        self.may_go_on: Callable[[], Awaitable[bool]] | None = None
        self._checked_at = time.monotonic()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if self.is_secure:
                headers.setdefault("Strict-Transport-Security", HSTS)
        elif message.get("more_body"):
            await self._check_again()
        await self._send(message)

    async def _check_again(self) -> None:
        now = time.monotonic()
        if self.may_go_on is not None and now - self._checked_at >= AGAIN_S:
            self._checked_at = now
            if not await self.may_go_on():
                raise _LoggedOut

    async def end(self) -> None:
        """Whoever reads sees that it is over, and not that something broke."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
