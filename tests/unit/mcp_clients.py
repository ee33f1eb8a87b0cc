"""Clients of the official SDK, for servers that tests run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from penstock.app.verbs.roles import Role
from penstock.mcp.envelope import DATA
from tests.unit.test_web import Site


@asynccontextmanager
async def connected(
    address: str, token: str, name: str = "robot-client", mode: str = "legacy"
) -> AsyncIterator[Client]:
    """A client of a web server."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        info = types.Implementation(name=name, version="1")
        async with Client(transport, client_info=info, mode=mode) as client:
            yield client


@asynccontextmanager
async def connected_to(
    at: Site, token: str, allow: Role = Role.ADMIN, **options: str
) -> AsyncIterator[Client]:
    """A client of a server in this process, which allows so much."""
    if at.app.state.mcp._made is None:
        at.app.state.settings = replace(at.app.state.settings, mcp_allow=allow)
    async with connected(f"http://127.0.0.1:{at.port}", token, **options) as client:
        yield client


async def called(client: Client, tool: str, given: Mapping[str, Any]) -> types.CallToolResult:
    found = await client.call_tool(tool, dict(given))
    assert isinstance(found, types.CallToolResult)
    return found


async def done(
    client: Client,
    tool: str,
    given: Mapping[str, Any],
    between: Callable[[], object] = lambda: None,
) -> types.CallToolResult:
    """Both calls of a tool that acts; the first one's answer if it is refused."""
    first = await called(client, tool, given)
    if first.is_error:
        return first
    between()
    return await called(client, tool, {**given, "confirm": first.structured_content["confirm"]})


def data_of(found: types.CallToolResult) -> Any:
    return found.structured_content[DATA]


def code_of(found: types.CallToolResult) -> str:
    assert found.is_error, found
    code = found.structured_content["error"]["code"]
    assert isinstance(code, str)
    return code


def said_of(found: types.CallToolResult) -> str:
    return json.dumps(found.structured_content)
