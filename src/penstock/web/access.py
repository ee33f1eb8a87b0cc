"""Who gets in: by the one-time link, by a token, or by the session that one of them has begun."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from starlette.responses import RedirectResponse, Response

from penstock.app.verbs.problems import Problem
from penstock.app.verbs.roles import Identity, Role
from penstock.errors import StoreError
from penstock.web.failures import FailureLimit, RefusalJournal, Refusals
from penstock.web.pages import leading_on_page
from penstock.web.sessions import LIFETIME_S, Session, Sessions
from penstock.web.trigger import PATH as TRIGGER_PATH
from penstock.web.trigger import trigger_identity

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from penstock.app import Project
    from penstock.app.views.tokens import TokenView
    from penstock.web.settings import WebSettings

Answer = TypeVar("Answer")
LINK_PATH = "/login"
# The last use of a token is written down this often.
USED_S = 60.0
# So many tokens that were valid before are let through while others from their address fail.
MOST_GOOD = 1_000
REFUSALS = {
    "unknown_token": ("bad_token", "This token is not valid."),
    "expired_token": ("token_expired", "This token has expired."),
    "revoked_token": ("token_revoked", "This token was revoked."),
}


class Tables(Protocol):
    """How the project is asked: in a thread, where nothing can be written or where it can."""

    def reading(self, call: Callable[[Project], Answer]) -> Awaitable[Answer]: ...

    def writing(self, call: Callable[[Project], Answer]) -> Awaitable[Answer]: ...


class Access:
    """Sessions and credentials of one server."""

    tables: Tables

    def __init__(
        self, settings: WebSettings, owner: str, show_link: Callable[[str], None] | None = None
    ) -> None:
        self.sessions = Sessions()
        self.settings = settings
        self.origins = settings.known_origins()
        self.failures = FailureLimit()
        # Whoever runs the server: the one-time link is theirs.
        self._owner = owner
        self._show_link = show_link or (lambda link: None)
        self._refusals = RefusalJournal(self._tell_refusals)
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._used: dict[int, float] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    def listens_at(self, port: int) -> None:
        """The port that the system has chosen, where none was asked for."""
        self.settings = replace(self.settings, port=port)
        self.origins = self.settings.known_origins()

    async def close(self) -> None:
        """Write down what is not written yet."""
        await self._refusals.close()
        if self._under_way:
            await asyncio.wait(self._under_way)

    # Sessions.

    def session_of(self, request: Request) -> Session | None:
        secret = request.cookies.get(self.cookie_name(request))
        return None if secret is None else self.sessions.find(secret)

    async def is_valid(self, identity: Identity) -> bool:
        """Whether the token that somebody came with still lets them in."""
        if identity.token is None:
            return True
        token = identity.token
        found = await self.tables.reading(lambda project: project.tokens.get(token))
        if found is None or found.state != "valid":
            self.sessions.end_of_token(token)
            return False
        self._note_used(token)
        return True

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

    # The one-time link.

    def new_link(self) -> str:
        """A link that begins one session of whoever runs the server."""
        return f"{self.settings.address}{LINK_PATH}?link={self.sessions.new_link()}"

    def login_by_link(self, request: Request, link: str) -> Response | None:
        """A session for whoever has the link, and the next link for whoever runs the server."""
        self._refuse_too_many(request)
        if not self.settings.is_local or not self.sessions.use_link(link):
            self._count_failure(request, "bad_link")
            return None
        self._show_link(self.new_link())
        # A page that leads on, not a redirect: a strict cookie is not sent along a chain of redirects that
        # began at another site, such as a chat that the link was sent in.
        return self._with_session(request, Identity(self._owner, Role.ADMIN), leading_on_page())

    # Tokens.

    async def bearer(self, request: Request) -> Identity:
        """Who has sent this token; raises if nobody has it."""
        given = request.headers.getlist("Authorization")
        if request.scope["path"].startswith(TRIGGER_PATH):
            found = trigger_identity(request.app.state.project, given[0])
            if found is not None:
                return found
        scheme, _, text = given[0].partition(" ")
        if len(given) != 1 or scheme.lower() != "bearer" or not text.strip():
            raise _refusal(
                "bad_authorization", "The header must be `Authorization: Bearer TOKEN`, once."
            )
        return await self.identity_of(request, text.strip())

    async def identity_of(self, request: Request, text: str) -> Identity:
        """Who has a token with this text. A wrong one takes as long as a right one, and is counted."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        if digest not in self._good:
            self._refuse_too_many(request)
        found = await self.tables.reading(lambda project: project.tokens.find(text))
        if found is None or found.state != "valid":
            self._good.pop(digest, None)
            cause = "unknown_token" if found is None else f"{found.state}_token"
            self._count_failure(request, cause, found)
            raise _refusal(*REFUSALS[cause])
        self._good[digest] = None
        if len(self._good) > MOST_GOOD:
            self._good.popitem(last=False)
        self._note_used(found.id)
        return Identity(found.name, Role(found.role), found.id)

    def _note_used(self, token: int) -> None:
        now = time.monotonic()
        if now - self._used.get(token, -USED_S) >= USED_S:
            self._used[token] = now
            self._later(self.tables.writing(lambda project: project.tokens.note_used(token)))

    def _later(self, call: Awaitable[Any]) -> None:
        """Nobody waits for it, and nobody misses it where the database is away."""

        async def called() -> None:
            with suppress(StoreError):
                await call

        self._start(called())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    # Failures.

    def _refuse_too_many(self, request: Request) -> None:
        wait_s = self.failures.wait_s(address_of(request))
        if wait_s > 0:
            self._refusals.add("too_many_failures", address_of(request))
            raise Problem(
                429,
                "too_many_failures",
                "Too many logins have failed; this one was not looked at.",
                headers={"Retry-After": str(int(wait_s) + 1)},
            )

    def _count_failure(self, request: Request, cause: str, token: TokenView | None = None) -> None:
        address = address_of(request)
        self.failures.count(address)
        self._refusals.add(cause, address, "" if token is None else token.name)

    async def _tell_refusals(self, told: Refusals) -> None:
        about = (told.number, told.causes, told.addresses, told.tokens)
        await self.tables.writing(lambda project: project.tokens.note_refused(*about))


def address_of(request: Request) -> str:
    """The other end of the connection; what headers say of it is nobody's proof."""
    return "" if request.client is None else request.client.host


def _refusal(code: str, detail: str) -> Problem:
    return Problem(
        401,
        code,
        detail,
        "`penstock token create NAME --role ROLE` makes a token, `penstock token list` shows all",
        headers={"WWW-Authenticate": 'Bearer realm="penstock"'},
    )
