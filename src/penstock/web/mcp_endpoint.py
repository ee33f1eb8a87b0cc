"""Where MCP clients connect to `penstock web`: made at the first request, if the extra is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from penstock.app.verbs.problems import Problem

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

    from penstock.mcp.over_http import Endpoint

PATH = "/mcp"
METHODS = ("POST", "DELETE")


class McpEndpoint:
    """An application of its own below the guard. The SDK is imported only where somebody asks for it."""

    def __init__(self) -> None:
        self._made: Endpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in METHODS:
            # No stream is kept open: the server says nothing that it was not asked for.
            raise Problem(
                405,
                "method_not_allowed",
                "This path takes POST and DELETE.",
                headers={"Allow": ", ".join(METHODS)},
            )
        await self._endpoint(scope["app"])(scope, receive, send)

    def _endpoint(self, app: Starlette) -> Endpoint:
        if self._made is None:
            refuse_missing()
            from penstock.mcp.over_http import Endpoint

            state = app.state
            settings = state.settings
            self._made = Endpoint(
                state.project,
                state.project_calls,
                state.keys,
                settings.mcp_allow,
                settings.max_body_bytes,
            )
        return self._made

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()


def refuse_missing() -> None:
    if find_spec("mcp") is None:
        raise Problem(
            501,
            "extra_missing",
            "MCP is not installed on this server.",
            "pip install 'penstock[mcp]', then start the server again",
        )
