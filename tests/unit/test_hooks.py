"""Hooks: what is sent, signed, tried again and never sent where it must not go."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from penstock.engine.leader.hooks import (
    CAP_S,
    MOST_ATTEMPTS,
    HookChore,
    addressed,
    command,
    delivery_id,
    hooks_of,
    post,
    retry_in_s,
    signature,
)
from penstock.errors import ConfigError
from penstock.project import Project
from penstock.settings import load_settings
from penstock.settings.values import HookSettings
from penstock.store.hooks import Parcel
from penstock.testing import VirtualClock

PARCEL = Parcel(7, "tell", 3, "completed", '{"run":3}', 1)
NOW = 1_800_000_000.0
SECRET = "s3cret-of-the-receiver"
STEPS = """
from penstock import Pipeline

plain = Pipeline("plain")


@plain.step(unit="run")
async def look(ctx):
    pass
"""


# What is sent.


@asynccontextmanager
async def receiver(
    answer: Callable[[web.Request], web.StreamResponse],
) -> AsyncIterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A server on this machine, and what it was sent."""
    seen: list[tuple[dict[str, str], bytes]] = []

    async def take(request: web.Request) -> web.StreamResponse:
        seen.append((dict(request.headers), await request.read()))
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", seen
    finally:
        await runner.cleanup()


def sent(
    answer: Callable[[web.Request], web.StreamResponse], **more: Any
) -> tuple[str, list[tuple[dict[str, str], bytes]]]:
    async def send() -> tuple[str, list[tuple[dict[str, str], bytes]]]:
        async with receiver(answer) as (url, seen):
            about: dict[str, Any] = {"allow_private": True, "url": f"{url}/hook", **more}
            return await post(HookSettings("tell", **about), PARCEL, NOW), seen

    return asyncio.run(send())


def test_a_delivery_has_its_body_its_id_and_a_signature_that_can_be_checked() -> None:
    error, [(headers, body)] = sent(
        lambda request: web.Response(status=204), secret=SECRET, headers={"X-Team": "data"}
    )
    assert error == ""
    assert json.loads(body) == {"run": 3}
    assert headers["Penstock-Delivery"] == delivery_id(PARCEL)
    assert headers["Penstock-Event"] == "run.completed"
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Team"] == "data"
    at, v1 = (part.partition("=")[2] for part in headers["Penstock-Signature"].split(","))
    signed = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(v1, signed)
    assert int(at) == int(NOW)


def test_deliveries_of_two_projects_have_different_ids_and_name_their_project() -> None:
    one, other = addressed(PARCEL, "shop-watch"), addressed(PARCEL, "news-watch")

    assert json.loads(one.body) == {"project": "shop-watch", "run": 3}
    assert delivery_id(one) == delivery_id(addressed(PARCEL, "shop-watch"))
    assert delivery_id(one) != delivery_id(other)


def test_without_a_secret_there_is_no_signature() -> None:
    _, [(headers, _)] = sent(lambda request: web.Response())
    assert "Penstock-Signature" not in headers


def test_another_body_time_or_secret_is_another_signature() -> None:
    one = signature(SECRET, b"{}", NOW)
    assert one == signature(SECRET, b"{}", NOW)
    assert len({one, signature("x", b"{}", NOW), signature(SECRET, b"[]", NOW)}) == 3
    assert one != signature(SECRET, b"{}", NOW + 1)


@pytest.mark.parametrize("status", [199 + 1, 201, 202, 204])
def test_a_2xx_is_an_acceptance(status: int) -> None:
    assert sent(lambda request: web.Response(status=status))[0] == ""


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_accepts_nothing(status: int) -> None:
    elsewhere = {"Location": "/elsewhere"}
    error, seen = sent(lambda request: web.Response(status=status, headers=elsewhere))
    assert error == f"it answered {status}"
    assert len(seen) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500, 503])
def test_anything_else_is_tried_again(status: int) -> None:
    assert sent(lambda request: web.Response(status=status))[0] == f"it answered {status}"


def test_a_private_address_is_not_told_unless_it_is_allowed() -> None:
    error, seen = sent(lambda request: web.Response(), allow_private=False)
    assert "not a public address (allow_private permits it)" in error
    assert seen == []


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/x", "http://[::1]/x", "http://localhost/x", "http://2130706433/"],
)
def test_no_way_round_leads_to_a_private_address(url: str) -> None:
    assert asyncio.run(post(HookSettings("tell", url=url), PARCEL, NOW)) != ""


def test_nobody_there_is_an_error_in_words() -> None:
    hook = HookSettings("tell", url="http://127.0.0.1:9/x", allow_private=True)
    assert asyncio.run(post(hook, PARCEL, NOW)).startswith("no connection")


# Commands.


def test_a_command_is_told_on_its_input_and_by_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hidden")
    told = tmp_path / "told"
    script = f'(cat; echo; env) > "{told}"'
    assert command(HookSettings("x", command=("/bin/sh", "-c", script)), PARCEL) == ""
    text = told.read_text()
    assert text.startswith('{"run":3}\n')
    assert f"PENSTOCK_DELIVERY={delivery_id(PARCEL)}" in text
    assert "PENSTOCK_EVENT=run.completed" in text
    assert "PENSTOCK_RUN=3" in text
    assert "SHOP_PASSWORD" not in text


def test_a_command_is_given_a_secret_by_its_environment(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(
        "hooks: [{command: [/bin/sh, -c, 'echo \"$PAGER\" >&2; exit 1'], env: {PAGER: '${TOKEN}'}}]\n"
    )
    [hook] = load_settings(tmp_path, environ={"TOKEN": "canary-17"}).hooks
    assert command(hook, PARCEL) == "it ended with 1: canary-17"
    assert "canary-17" not in repr(hook)
    for wrong in ("{a=b: x}", "{A: [x]}", "x", "{A: 5}"):
        (tmp_path / "penstock.yaml").write_text(f"hooks: [{{command: [a], env: {wrong}}}]\n")
        with pytest.raises(ConfigError, match="env"):
            load_settings(tmp_path)


def test_the_words_of_a_command_are_not_read_by_a_shell(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    hook = HookSettings("x", command=("/bin/echo", f"; touch {planted}", f"$(touch {planted})"))
    assert command(hook, PARCEL) == ""
    assert not planted.exists()


def test_a_command_that_fails_says_how() -> None:
    hook = HookSettings("x", command=("/bin/sh", "-c", "echo first >&2; echo no room >&2; exit 3"))
    assert command(hook, PARCEL) == "it ended with 3: no room"
    missing = HookSettings("x", command=("/no/such/command",))
    assert (
        command(missing, PARCEL) == "/no/such/command can't be started (No such file or directory)"
    )


def test_a_command_that_does_not_end_is_ended_with_what_it_started() -> None:
    hook = HookSettings("x", command=("/bin/sh", "-c", "sleep 60 & sleep 60"), timeout_s=0.2)
    assert command(hook, PARCEL) == "it did not end within 0.2 s"


# Trying again.


def test_attempts_are_spread_grow_and_end() -> None:
    waits = [retry_in_s(n, 1.0) for n in range(1, MOST_ATTEMPTS)]
    assert waits[:4] == [2.0, 4.0, 8.0, 16.0]
    assert waits[-1] == CAP_S
    assert retry_in_s(3, 0.0) == 4.0
    assert retry_in_s(MOST_ATTEMPTS, 0.5) is None
    total = sum(wait or 0.0 for wait in waits)
    assert 36 * 3600 < total < 72 * 3600


class Rig:
    """A project with a hook that answers as it is told to, and an ended run."""

    def __init__(self, folder: Path, answers: list[str]) -> None:
        (folder / "steps.py").write_text(STEPS)
        (folder / "penstock.yaml").write_text(
            "hooks: [{url: 'https://example.com/x', secret: '${HOOK_SECRET}'}]\n"
            "sources: {a: {pipeline: 'steps:plain'}}\n"
        )
        self.project = Project(load_settings(folder, environ={"HOOK_SECRET": SECRET}))
        self.project.clock = self.clock = VirtualClock()
        self.answers = answers
        self.sent: list[Parcel] = []
        self.arrived = threading.Semaphore(0)
        self.hooks = self.open()

    def open(self) -> HookChore:
        hooks = HookChore(self.project, self.project.connection, self.send)
        hooks.plan()
        return hooks

    def send(self, hook: HookSettings, parcel: Parcel) -> str:
        self.sent.append(parcel)
        answer = self.answers.pop(0)
        if answer == "raise":
            raise ValueError(f"with the {SECRET}")
        return answer

    def end_a_run(self) -> int:
        run_id = self.project.run("a")
        self.project.connection.runs.cancel(run_id, "test", "")
        return run_id

    def go(self, after_s: float) -> str:
        """Let time pass, look, and wait for what was sent; answers with the state of the line."""
        self.clock.advance(after_s)
        self.hooks.part()
        return self.project.connection.hooks.outbox()[0].state


def test_what_is_not_accepted_is_sent_again_until_it_is_and_then_never_more(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ["it answered 500", "raise", "", "must not be asked for"])
    rig.end_a_run()
    assert rig.go(0.0) == "failing"
    assert rig.go(0.5) == "failing"
    assert len(rig.sent) == 1, "not before its time"
    assert rig.go(3.0) == "failing"
    assert "***" in rig.project.connection.hooks.outbox()[0].error
    assert SECRET not in rig.project.connection.hooks.outbox()[0].error
    assert rig.go(9.0) == "delivered"
    assert rig.go(CAP_S) == "delivered"
    assert [parcel.id for parcel in rig.sent] == [1, 1, 1]
    assert len({parcel.body for parcel in rig.sent}) == 1
    rig.project.close()


def test_who_dies_between_the_end_of_the_run_and_the_delivery_is_followed_by_another(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, ["", ""])
    rig.end_a_run()
    rig.project.connection.hooks.claim(10, 60.0)  # and never said how it went
    rig.hooks = rig.open()
    assert rig.go(10.0) == "due"
    assert rig.go(60.0) == "delivered"
    rig.project.close()


def test_a_hook_that_is_no_longer_configured_is_given_up(tmp_path: Path) -> None:
    rig = Rig(tmp_path, [])
    rig.end_a_run()
    rig.hooks._hooks.clear()
    assert rig.go(0.0) == "given up"
    assert rig.sent == []
    rig.project.close()


# Settings.


def read(folder: Path, text: str, source: str = "") -> object:
    (folder / "penstock.yaml").write_text(
        f"hooks: {text}\nsources: {{acme.com: {{pipeline: 'x:y'{source}}}}}\n"
    )
    return load_settings(folder, environ={"T": "t" * 20})


def test_hooks_of_a_source_are_told_of_that_source_alone(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "[{url: 'https://hooks.example/x'}]",
        ", hooks: [{name: mine, on: [failed], command: [/bin/true]}]",
    )
    found = hooks_of(settings, {"acme.com": 4})  # type: ignore[arg-type]
    assert ("hooks.example", "completed", 0) in found
    assert len(found) == 5
    assert ("acme.com/mine", "failed", 4) in found


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[{on: [failed]}]", "needs a url or a command"),
        ("[{url: 'https://x.example', command: [/bin/true]}]", "only one of them"),
        ("[{url: 'ftp://x.example'}]", "must be an address"),
        ("[{url: nowhere}]", "must be an address"),
        ("[{command: notify}]", "must be a list such as"),
        ("[{command: []}]", "not an empty list"),
        ("[{command: [/bin/true], secret: x}]", "belongs to url"),
        ("[{url: 'https://x.example', on: [ended]}]", "must be some of"),
        ("[{url: 'https://x.example', when: now}]", "unknown key"),
        ("[{url: 'https://x.example/1'}, {url: 'https://x.example/2'}]", "give each a name"),
        ("{url: 'https://x.example'}", "must be a list of hooks"),
        ("[{url: 'https://x.example', headers: {'a b': c}}]", "is not the name of a header"),
        ("[{name: 'a/b', url: 'https://x.example'}]", "letters, digits"),
    ],
)
def test_a_hook_that_is_wrong_is_refused_in_words(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        read(tmp_path, text)


def test_what_is_secret_is_not_shown(tmp_path: Path) -> None:
    settings = read(
        tmp_path, "[{url: 'https://x.example/${T}', secret: '${T}', headers: {A: '${T}'}}]"
    )
    assert "t" * 20 not in repr(settings)
