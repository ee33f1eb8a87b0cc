"""The routes that begin and end sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from penstock.web.pages import login_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from penstock.web.access import Access


async def show_login(request: Request) -> Response:
    """The one-time link leads here, and whoever has no session."""
    access: Access = request.app.state.access
    link = request.query_params.get("link")
    is_local = request.app.state.settings.is_local
    if link is None:
        return login_page(is_local)
    answer = access.login_by_link(request, link)
    if answer is not None:
        return answer
    return login_page(is_local, "This link was used already, or is too old.", 403)


async def log_out(request: Request) -> Response:
    access: Access = request.app.state.access
    return access.logged_out(request)


ROUTES = (
    Route("/login", show_login, methods=["GET"]),
    Route("/logout", log_out, methods=["POST"]),
)
