"""The few pages that are there without the dashboard: logging in, refusals, a database that is gone."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse

if TYPE_CHECKING:
    from starlette.types import Scope

    from penstock.app.verbs.problems import Problem

# How often a page asks again whether the database is back.
AGAIN_S = 5
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} - Penstock</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{head}
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/penstock.css"></head>
<body class="plain"><main><h1>{title}</h1>
{body}
</main></body></html>
"""


def page(title: str, body: str, status: int = 200, head: str = "", **headers: str) -> HTMLResponse:
    """A page; `body` and `head` are HTML, the title is text."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = PAGE.format(title=escape(title), body=body, head=head)
    return HTMLResponse(text, status, named)


def wants_page(scope: Scope) -> bool:
    """Whether a person looks at the answer: not for the API, and not where no page was asked for."""
    if scope["path"].startswith("/api/"):
        return False
    return "text/html" in Headers(scope=scope).get("Accept", "")


def login_page(is_local: bool, message: str = "", status: int = 200) -> HTMLResponse:
    hint = (
        "<p>Open the link that <code>penstock web</code> has printed, or paste a token.</p>"
        if is_local
        else "<p>Paste a token. An administrator makes one: <code>penstock token create</code></p>"
    )
    said = f'<p role="alert">{escape(message)}</p>' if message else ""
    form = (
        '<form method="post" action="/login"><label for="token">Token</label> '
        '<input id="token" name="token" type="password" autocomplete="off" required autofocus> '
        '<button type="submit">Log in</button></form>'
    )
    return page("Log in", f"{said}{hint}\n{form}", status)


def leading_on_page() -> HTMLResponse:
    body = '<p>You are logged in. <a href="/">To the overview</a></p>'
    return page("Welcome", body, head='<meta http-equiv="refresh" content="0; url=/">')


def database_page() -> HTMLResponse:
    """It loads itself again, so that it is gone when the database is back."""
    body = (
        "<p>Penstock can't reach its database now. Nothing is lost: work continues when the database is "
        f"back.</p><p>This page tries again every {AGAIN_S} seconds.</p>"
        "<p>To see what is wrong: <code>penstock db check</code></p>"
    )
    head = f'<meta http-equiv="refresh" content="{AGAIN_S}">'
    return page("The database does not answer", body, 503, head, Retry_After=str(AGAIN_S))


def refused_page(problem: Problem) -> HTMLResponse:
    # The hint of a remedy is a call in Python, or a request.
    said = problem.hint if problem.remedy is None else ""
    hint = f"<p>{escape(said)}</p>" if said else ""
    if problem.status == 404 and not hint:
        hint = "<p>The address may be mistyped. The menu of the overview has every page.</p>"
    body = f'<p>{escape(problem.detail)}</p>{hint}<p><a href="/">To the overview</a></p>'
    return page(str(problem.as_json()["title"]), body, problem.status)


def welcome_page() -> HTMLResponse:
    """What stands at / while the dashboard is not installed."""
    body = '<p>The API is at <a href="/api/v1/overview">/api/v1</a>.</p>'
    return page("Penstock", body)
