"""Hooks: tell the outside that runs have ended, and of alerts, until it has accepted it.

Done by the host that leads. What is to be told lies in the outbox; each line is somebody's for a while, is
sent in a thread beside the clockwork, and is done with when the other side has accepted it: a 2xx, or a
command that exits with 0. Whoever dies in between is followed by another, so a receiver may be told twice:
the id of the delivery is the same each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import queue
import random
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

import msgspec
from msgspec import structs

from penstock.clock import Clock
from penstock.engine.tracing.traced_run import trace_of_run
from penstock.http.failures import FetchError
from penstock.project import Project
from penstock.settings.alerts import RouteSettings
from penstock.settings.hooks import AUDIT_HEAD
from penstock.settings.secrets import LOOKED_AT, redact_and_cut
from penstock.settings.values import HookSettings, Settings
from penstock.store.alert_rows import ROUTE
from penstock.store.hooks import EVERY_SOURCE, Parcel
from penstock.store.store import Store
from penstock.version import __version__

ACTOR = "hooks"
AT_ONCE = 8
BASE_S = 2.0
CAP_S = 3600.0
# Two days of trying, about.
MOST_ATTEMPTS = 60
# Beyond a hook's own patience, for whoever sends to write down how it went.
MARGIN_S = 30.0
# What is under way when Penstock stops is waited for so long; afterwards it is sent again, by another.
PARTING_S = 3.0
MAX_ANSWER = 65536
ERROR_LENGTH = 250
SIGNATURE = "Penstock-Signature"
DELIVERY = "Penstock-Delivery"
EVENT = "Penstock-Event"
TRACEPARENT = "traceparent"
# What the ids of deliveries are made in; it must never change.
DELIVERIES = uuid.UUID("6f1d2a3c-5b0e-4f63-9a44-7d1b8c2e9f50")
# A command is told what it needs, and none of the secrets that our environment may hold.
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SYSTEMROOT")
# Answers "" when it was accepted, else what was wrong.
Send = Callable[[HookSettings, Parcel], str]


def hooks_of(settings: Settings, ids: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """Who is told of what: (hook, state that a run ends in, source or 0 for every source)."""
    found = [
        (hook.name, state, EVERY_SOURCE)
        for hook in settings.hooks
        for state in hook.on
        if state != AUDIT_HEAD
    ]
    for key, source in settings.sources.items():
        found += [(hook.name, state, ids[key]) for hook in source.hooks for state in hook.on]
    return found


def retry_in_s(attempts: int, chance: float) -> float | None:
    """How long to wait after so many attempts; None when that was enough of them."""
    if attempts >= MOST_ATTEMPTS:
        return None
    longest: float = min(CAP_S, BASE_S * 2 ** min(attempts - 1, 20))
    return longest * (0.5 + 0.5 * chance)


def signature(secret: str, body: bytes, at: float) -> str:
    """What a receiver checks: made of the body and the time, with the secret that both know."""
    stamp = str(int(at))
    signed = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={stamp},v1={signed}"


def addressed(parcel: Parcel, project: str, private: Collection[str] = ()) -> Parcel:
    """The parcel with the name of its project in its body, and without what a private source said."""
    body = msgspec.json.decode(parcel.body)
    if body.get("source") in private:
        errors = [{**each, "error": "", "cause": ""} for each in body.get("errors", ())]
        body = {**body, "reason": "", "errors": errors, "private": True}
    told = msgspec.json.encode({"project": project, **body}).decode()
    return structs.replace(parcel, body=told)


def delivery_id(parcel: Parcel) -> str:
    """The same each time that it is sent, and no other's: numbers alone collide between projects."""
    return str(uuid.uuid5(DELIVERIES, f"{parcel.id}:{parcel.hook}:{parcel.body}"))


def event_of(parcel: Parcel) -> str:
    """What it is about: the end of a run, or alerts."""
    if parcel.run_id:
        return f"run.{parcel.state}"
    return str(msgspec.json.decode(parcel.body).get("event", "alert"))


class HookChore:
    """Sends what is due, a few at once; the threads touch nothing of the store."""

    def __init__(self, project: Project, store: Store, send: Send | None = None) -> None:
        self._project = project
        self._store = store
        self._send = send or Sender(project.clock)
        self._project_name = project.settings.project
        self._rng = random.Random()
        self._ended: queue.SimpleQueue[tuple[Parcel, str]] = queue.SimpleQueue()
        self._under_way = 0
        settings = project.settings
        every = [*settings.hooks, *(h for s in settings.sources.values() for h in s.hooks)]
        self._hooks: dict[str, HookSettings | RouteSettings] = {hook.name: hook for hook in every}
        self._hooks |= {f"{ROUTE}{route.name}": route for route in settings.alerts}
        longest_s = max((each.timeout_s for each in self._hooks.values()), default=0.0)
        self._lease_s = MARGIN_S + longest_s

    def plan(self) -> None:
        """Make this project's hooks the ones that the ends of runs are put down for."""
        sources = self._project.settings.sources
        ids = self._store.sources.ensure(list(sources))
        self._store.hooks.plan(hooks_of(self._project.settings, ids))

    def look(self) -> None:
        """Write down how it went with what was sent, and send what is due."""
        self._settle()
        room = AT_ONCE - self._under_way
        if room <= 0:
            return
        for parcel in self._store.hooks.claim(room, self._lease_s):
            hook = self._hooks.get(parcel.hook)
            if hook is None:
                what = "route" if parcel.hook.startswith(ROUTE) else "hook"
                error = f"penstock.yaml has no such {what}"
                self._store.hooks.refuse(parcel, error, None, ACTOR)
                continue
            self._under_way += 1
            # Not waited for when the process ends: what it was sending is due again then.
            about = (
                hook,
                self._traced(
                    addressed(parcel, self._project_name, self._project.settings.private_sources)
                ),
            )
            threading.Thread(target=self._carry, args=about, name="hook", daemon=True).start()

    def _traced(self, parcel: Parcel) -> Parcel:
        settings = self._project.settings
        if settings.tracing.endpoint is None:
            return parcel
        facts = self._store.runs.facts([parcel.run_id]).get(parcel.run_id)
        if facts is None:
            return parcel
        trace = trace_of_run(settings, facts.id, facts.created_at, facts.options)
        return structs.replace(parcel, traceparent=trace.traceparent)

    def _carry(self, hook: HookSettings | RouteSettings, parcel: Parcel) -> None:
        try:
            error = self._sent(hook, parcel)
        except Exception as trouble:
            error = f"{type(trouble).__name__}: {trouble}"
        self._ended.put((parcel, error))

    def _sent(self, hook: HookSettings | RouteSettings, parcel: Parcel) -> str:
        if isinstance(hook, HookSettings):
            return self._send(hook, parcel)
        # Here and not above: most projects have no routes.
        from penstock.engine.alerting.routes import send_on_route

        return send_on_route(hook, parcel, self._project.clock.now())

    def _settle(self, wait_s: float = 0.0) -> None:
        with suppress(queue.Empty):
            while self._under_way:
                parcel, error = self._ended.get(wait_s > 0, wait_s or None)
                self._under_way -= 1
                self._note(parcel, error)

    def _note(self, parcel: Parcel, error: str) -> None:
        if not error:
            self._store.hooks.accept(parcel, ACTOR)
            return
        again_s = retry_in_s(parcel.attempts, self._rng.random())
        told = redact_and_cut(error, self._project.settings.secrets, ERROR_LENGTH)
        self._store.hooks.refuse(parcel, told, again_s, ACTOR)

    def part(self) -> None:
        """Send what is due a last time, and wait for it, but not for long."""
        self.look()
        self._settle(PARTING_S)


class Sender:
    """Over the network, or by a command: one delivery, once. Answers what was wrong, if anything was."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, hook: HookSettings, parcel: Parcel) -> str:
        if hook.url is not None:
            return asyncio.run(post(hook, parcel, self._clock.now()))
        return command(hook, parcel)


async def post(hook: HookSettings, parcel: Parcel, now: float) -> str:
    """Follows no redirect: what a hook says must not go where its owner did not send it."""
    # Here and not above: a process that only schedules would carry all of HTTP in its memory.
    from penstock.http.network import AiohttpNetwork, Request

    body = parcel.body.encode()
    headers = {
        "User-Agent": f"penstock/{__version__}",
        **hook.headers,
        "Content-Type": "application/json",
        DELIVERY: delivery_id(parcel),
        EVENT: event_of(parcel),
    }
    if parcel.traceparent:
        headers[TRACEPARENT] = parcel.traceparent
    if hook.secret is not None:
        headers[SIGNATURE] = signature(hook.secret, body, now)
    network = AiohttpNetwork()
    try:
        request = Request(
            "POST",
            hook.url or "",
            headers,
            body,
            timeout_s=hook.timeout_s,
            max_bytes=MAX_ANSWER,
            allow_private=hook.allow_private,
            is_prefix_enough=True,
        )
        answer = await network.send(request)
    except FetchError as error:
        return error.message.replace("fetch.allow_private", "allow_private")
    finally:
        await network.close()
    return "" if 200 <= answer.status < 300 else f"it answered {answer.status}"


def command(hook: HookSettings, parcel: Parcel) -> str:
    """No shell: its words are its own; what is told comes on its standard input."""
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    environment |= {
        "PENSTOCK_DELIVERY": delivery_id(parcel),
        "PENSTOCK_PROJECT": _project_of(parcel),
        "PENSTOCK_EVENT": event_of(parcel),
        "PENSTOCK_RUN": str(parcel.run_id),
        **({TRACEPARENT.upper(): parcel.traceparent} if parcel.traceparent else {}),
        **hook.env,
    }
    try:
        process = subprocess.Popen(  # noqa: S603 (the operator's own words, and no shell)
            hook.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return f"{hook.command[0]} can't be started ({error.strerror})"
    try:
        _, told = process.communicate(parcel.body.encode(), timeout=hook.timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return f"it did not end within {hook.timeout_s:g} s"
    if not process.returncode:
        return ""
    words = told.decode("utf-8", "replace").strip().splitlines()
    return f"it ended with {process.returncode}" + (f": {words[-1][:LOOKED_AT]}" if words else "")


def _project_of(parcel: Parcel) -> str:
    return str(msgspec.json.decode(parcel.body).get("project", ""))


def _end(process: subprocess.Popen[bytes]) -> None:
    """With everything it has started, which may hold its pipes open."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
