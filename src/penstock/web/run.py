"""`penstock web`: the server from its beginning to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.app.noun import who
from penstock.errors import Refused
from penstock.web.access import Access
from penstock.web.application import application
from penstock.web.listener import Listener

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.web.settings import WebSettings


def run_web(project: Project, settings: WebSettings, tell: Callable[[str], None]) -> None:
    """Serve until stopped."""
    refuse_open_door(settings)
    asyncio.run(serve(project, settings, tell))


def refuse_open_door(settings: WebSettings) -> None:
    """Other machines get in over TLS only, or through a proxy that has it."""
    if settings.is_local or settings.is_secure or settings.origins:
        return
    raise Refused(
        f"without TLS it listens on loopback only, not on {settings.host}",
        "--tls-certificate FILE --tls-key FILE, or behind a proxy --origin https://NAME",
        code="door_open",
    )


async def serve(project: Project, settings: WebSettings, tell: Callable[[str], None]) -> None:
    """Serve until the task is cancelled or the process is told to stop."""
    access = Access(settings, who(None), lambda link: tell(f"for another browser: {link}"))
    app = application(project, settings, access)
    listener = Listener(app, settings, tell)

    def begin(port: int) -> None:
        access.listens_at(port)
        tell(f"listening on {access.settings.address}")
        if settings.is_local:
            tell(f"open this link, once: {access.new_link()}")

    listener.on_listening = begin
    listener.on_stopping = app.state.follower.stop
    try:
        await listener.serve()
    finally:
        await access.close()
        app.state.follower.close()
        app.state.calls.close()
