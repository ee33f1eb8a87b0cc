"""Who gets in: by the one-time link, by a token, or by the session that one of them has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from penstock.web.identity import Identity, Role
from penstock.web.pages import leading_on_page
from penstock.web.problems import Problem
from penstock.web.sessions import LIFETIME_S, Session, Sessions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from penstock.web.settings import WebSettings

LINK_PATH = "/login"


class Access:
    """Sessions and credentials of one server."""

    def __init__(
        self, settings: WebSettings, owner: str, show_link: Callable[[str], None] | None = None
    ) -> None:
        self.sessions = Sessions()
        self.settings = settings
        self.origins = settings.known_origins()
        # Whoever runs the server: the one-time link is theirs.
        self._owner = owner
        self._show_link = show_link or (lambda link: None)

    def listens_at(self, port: int) -> None:
        """The port that the system has chosen, where none was asked for."""
        self.settings = replace(self.settings, port=port)
        self.origins = self.settings.known_origins()

    def new_link(self) -> str:
        """A link that begins one session of whoever runs the server."""
        return f"{self.settings.address}{LINK_PATH}?link={self.sessions.new_link()}"

    def session_of(self, request: Request) -> Session | None:
        secret = request.cookies.get(self.cookie_name(request))
        return None if secret is None else self.sessions.find(secret)

    async def bearer(self, request: Request) -> Identity:
        """Who has sent this token; raises if nobody has it."""
        await asyncio.sleep(0)
        raise Problem(
            401, "bad_token", "This token is not valid.", headers={"WWW-Authenticate": "Bearer"}
        )

    def login_by_link(self, request: Request, link: str) -> Response | None:
        """A session for whoever has the link, and the next link for whoever runs the server."""
        if not self.settings.is_local or not self.sessions.use_link(link):
            return None
        self._show_link(self.new_link())
        # A page that leads on, not a redirect: a strict cookie is not sent along a chain of redirects that
        # began at another site, such as a chat that the link was sent in.
        return self._with_session(request, Identity(self._owner, Role.ADMIN), leading_on_page())

    def logged_in(self, request: Request, identity: Identity) -> Response:
        """To the overview, with a session."""
        return self._with_session(request, identity, RedirectResponse("/", 303))

    def _with_session(self, request: Request, identity: Identity, answer: Response) -> Response:
        """With a new session: one that was there before is ended."""
        self._end(request)
        secret, _ = self.sessions.begin(identity)
        is_secure = request.state.origin.is_secure
        answer.set_cookie(
            self.cookie_name(request),
            secret,
            max_age=int(LIFETIME_S),
            secure=is_secure,
            httponly=True,
            samesite="strict",
            path="/",
        )
        return answer

    def logged_out(self, request: Request) -> Response:
        self._end(request)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(self.cookie_name(request), secure=request.state.origin.is_secure)
        return answer

    def login_redirect(self, scope: Scope) -> Response:
        return RedirectResponse("/login", 303)

    def cookie_name(self, request: Request) -> str:
        """Cookies do not tell ports apart: several servers of one machine have names of their own."""
        origin = request.state.origin
        return "__Host-penstock" if origin.is_secure else f"penstock-{origin.port}"

    def _end(self, request: Request) -> None:
        secret = request.cookies.get(self.cookie_name(request))
        if secret is not None:
            self.sessions.end(secret)
