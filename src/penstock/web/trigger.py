"""The trigger: signals over HTTP, with the same rules as the command that raises them.

One path and one method. A browser can't be made to use it: what it sends must be JSON by its type, for a host
that we are known by, and from no other origin. Whoever may not is not told why not.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

from aiohttp import web

from penstock.app import Project
from penstock.app.calls import Calls, InOneThread
from penstock.app.views.signals import RaisedView
from penstock.errors import PenstockError, Refused, StoreError, UsageError
from penstock.journal.origin import TRIGGER, acting_from
from penstock.web.answers import json_answer, json_body, refusal
from penstock.web.door import LOCAL_NAMES, Door, is_loopback
from penstock.web.server import serving

ACTOR = "http"
LONGEST_KEY = 200


def run_trigger(project: Project, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Listen until stopped."""
    refuse_open_door(project, host)
    asyncio.run(_serve(project, host, port, tell))


def refuse_open_door(project: Project, host: str) -> None:
    """Without a token, nobody but this machine may knock; a token that can't be known is not none."""
    if project.signals.trigger().token is None and not is_loopback(host):
        raise Refused(
            f"without a token it listens on loopback only, not on {host}",
            "trigger: {token: ${PENSTOCK_TRIGGER_TOKEN}} in penstock.yaml",
            code="door_open",
        )


async def _serve(project: Project, host: str, port: int, tell: Callable[[str], None]) -> None:
    calls = InOneThread("trigger")
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    try:
        # Opens the store in its thread, or says what is wrong.
        await calls(lambda: project.source_ids)
        async with listening(project, calls, host, port, tell) as (name, bound):
            shown = f"[{name}]" if ":" in name else name
            tell(f"listening on http://{shown}:{bound}")
            await stopping.wait()
    finally:
        await calls(project.close)
        calls.close()


def listening(
    project: Project, calls: Calls, host: str, port: int, tell: Callable[[str], None]
) -> AbstractAsyncContextManager[tuple[str, int]]:
    """Serve for as long as this lasts; the address and port it listens at."""
    return serving(application(project, calls, host), host, port, tell)


def application(project: Project, calls: Calls, host: str) -> web.Application:
    """The whole of it, to be served or tested."""
    settings = project.signals.trigger()
    app = web.Application(client_max_size=settings.max_bytes)
    door = Door(settings.token, (*LOCAL_NAMES, host.lower(), *settings.hosts))
    app.router.add_post("/signals/{name}", partial(_raise, project, calls, door))
    return app


async def _raise(project: Project, calls: Calls, door: Door, request: web.Request) -> web.Response:
    door.check(request)
    if request.content_type != "application/json":
        raise refusal(web.HTTPUnsupportedMediaType, "the body must be application/json")
    data = await json_body(request)
    key = request.headers.get("Idempotency-Key") or None
    if key is not None and len(key) > LONGEST_KEY:
        raise refusal(
            web.HTTPBadRequest, f"an Idempotency-Key has at most {LONGEST_KEY} characters"
        )
    about = {
        "key": key,
        "source": request.query.get("source"),
        "actor": ACTOR,
        "traceparent": request.headers.get("traceparent"),
    }
    name = request.match_info["name"]

    def called() -> RaisedView:
        with acting_from(TRIGGER):
            return project.signals.raise_(name, data, **about)

    try:
        raised = await calls(called)
    except StoreError:
        raise refusal(web.HTTPServiceUnavailable, "the database does not answer now") from None
    except UsageError as error:
        raise refusal(web.HTTPBadRequest, error.message) from None
    except PenstockError as error:
        raise refusal(web.HTTPConflict, error.message) from None
    return json_answer(202, {"signal": raised.id, "name": raised.name, "is_new": raised.is_new})
