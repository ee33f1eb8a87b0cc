"""`penstock web`: the server from its beginning to its end."""

from __future__ import annotations

import asyncio
import os
import threading
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


def run_web(
    project: Project,
    settings: WebSettings,
    tell: Callable[[str], None],
    *,
    has_link: bool = True,
    parent: int | None = None,
) -> None:
    """Serve until stopped; with `parent`, until what can be read from it is at its end."""
    refuse_open_door(settings)
    asyncio.run(serve(project, settings, tell, has_link, parent))


def refuse_open_door(settings: WebSettings) -> None:
    """Other machines get in over TLS only, or through a proxy that has it."""
    is_behind_tls = any(origin.is_secure for origin in settings.origins)
    if settings.is_local or settings.is_secure or is_behind_tls:
        return
    raise Refused(
        f"without TLS it listens on loopback only, not on {settings.host}",
        "--tls-certificate FILE --tls-key FILE, or behind a proxy --origin https://NAME",
        code="door_open",
    )


async def serve(
    project: Project,
    settings: WebSettings,
    tell: Callable[[str], None],
    has_link: bool = True,
    parent: int | None = None,
) -> None:
    """Serve until the task is cancelled or the process is told to stop."""
    show_link = (lambda link: tell(f"for another browser: {link}")) if has_link else None
    access = Access(settings, who(None), show_link)
    app = application(project, settings, access)
    listener = Listener(app, settings, tell)

    def begin(port: int) -> None:
        access.listens_at(port)
        tell(f"listening on {access.settings.address}")
        if settings.is_local and has_link:
            tell(f"open this link, once: {access.new_link()}")

    listener.on_listening = begin
    listener.on_stopping = app.state.follower.stop
    if parent is not None:
        threading.Thread(target=_stop_after, args=(parent, listener), daemon=True).start()
    try:
        await listener.serve()
    finally:
        await app.state.mcp.close()
        await access.close()
        app.state.follower.close()
        app.state.cell_calls.close()
        app.state.calls.close()


def _stop_after(parent: int, listener: Listener) -> None:
    """Whoever has started this process holds the other end, and lets go of it when it ends."""
    while os.read(parent, 1024):
        pass
    listener.stop()
