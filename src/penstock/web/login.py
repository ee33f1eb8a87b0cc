"""The routes that begin and end sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.routing import Route

from penstock.app.verbs.problems import Problem
from penstock.web.pages import login_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from penstock.web.access import Access

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 10


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


async def log_in(request: Request) -> Response:
    """The form with a token. Its origin was checked: no other site's page can log somebody in."""
    access: Access = request.app.state.access
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise Problem(415, "not_a_form", f"The body must be {FORM}.")
    body = (await request.body()).decode("utf-8", "replace")
    try:
        [text] = parse_qs(body, max_num_fields=MOST_FIELDS)["token"]
    except (KeyError, ValueError):
        raise Problem(422, "bad_parameter", "The form must have one field `token`.") from None
    try:
        identity = await access.identity_of(request, text.strip())
    except Problem as problem:
        if problem.status == 503:
            raise
        answer = login_page(request.app.state.settings.is_local, problem.detail, problem.status)
        answer.headers.update(problem.headers)
        return answer
    return access.logged_in(request, identity)


async def log_out(request: Request) -> Response:
    access: Access = request.app.state.access
    return access.logged_out(request)


ROUTES = (
    Route("/login", show_login, methods=["GET"]),
    Route("/login", log_in, methods=["POST"]),
    Route("/logout", log_out, methods=["POST"]),
)
