"""The endpoint in `penstock web`: streamable HTTP behind the web server's own guard, tokens and roles."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from penstock.app.verbs.roles import Identity, Role
from penstock.mcp.caller import smaller
from penstock.mcp.server import FrontEnd
from penstock.mcp.stdio import quiet_sdk

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from penstock.app import Project
    from penstock.app.calls import ProjectCalls
    from penstock.app.idempotency import IdempotencyKeys

# A session keeps a client's name and its protocol, nothing else.
MOST_SESSIONS = 200
IDLE_S = 1_800.0


class Endpoint:
    """The protocol for requests that the guard has let in; `identity` stands in their state."""

    def __init__(
        self,
        project: Project,
        calls: ProjectCalls,
        keys: IdempotencyKeys,
        allowed: Role,
        most_bytes: int,
    ) -> None:
        quiet_sdk()
        front = FrontEnd(project, calls, keys, lambda context: _identity(context, allowed))
        self._manager = StreamableHTTPSessionManager(
            front.server(),
            json_response=True,
            session_idle_timeout=IDLE_S,
            max_request_body_size=most_bytes,
            max_sessions=MOST_SESSIONS,
        )
        self._begun = asyncio.Event()
        self._ending = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self._manager.run():
            self._begun.set()
            await self._ending.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._begun.wait()
        await self._manager.handle_request(_owned(scope), receive, send)

    async def close(self) -> None:
        self._ending.set()
        await asyncio.wait([self._task])


def _identity(context: Any, allowed: Role) -> Identity:
    """Whoever has sent this very request: a session of the protocol proves nothing."""
    known: Identity = context.request.state.identity
    return Identity(known.name, smaller(known.role, allowed), known.token)


def _owned(scope: Scope) -> Scope:
    """A session belongs to whoever began it: with another token, it is not found."""
    identity: Identity = scope["state"]["identity"]
    owner = AccessToken(token="", client_id=f"{identity.name} {identity.token}", scopes=[])
    return {**scope, "user": AuthenticatedUser(owner)}
