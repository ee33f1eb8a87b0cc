"""Routes: how a message about alerts reaches a webhook, a mailbox, or a service that Apprise knows."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from penstock.engine.alerting.message import Message, slack_payload, subject_of, text_of
from penstock.engine.leader.hooks import delivery_id, post
from penstock.settings.alerts import RouteSettings
from penstock.settings.values import HookSettings
from penstock.store.hooks import Parcel

_SLACK_HOST = re.compile(r"(.+\.)?slack(-gov)?\.com")
# The same way behind a proxy: a team, a webhook, and its secret.
_SLACK_PATH = re.compile(r"/services/T\w+/B\w+/\w+")
_decode = msgspec.json.Decoder(Message).decode


def is_slack(address: str) -> bool:
    """Whether an address is an incoming webhook of Slack."""
    parts = urlsplit(address)
    is_theirs = bool(_SLACK_HOST.fullmatch((parts.hostname or "").lower()))
    return is_theirs or bool(_SLACK_PATH.fullmatch(parts.path))


def send_on_route(route: RouteSettings, parcel: Parcel, now: float) -> str:
    """Deliver a message once; answers with what was wrong, or '' when it was accepted."""
    if route.kind == "webhook":
        return asyncio.run(_post(route, parcel, now))
    message = _decode(parcel.body)
    if route.kind == "smtp":
        return _mail(route, message, delivery_id(parcel), now)
    # Here and not above: few have it, and it is large.
    from penstock.http.apprise import send_by_apprise

    return send_by_apprise(route.to, subject_of(message), text_of(message))


async def _post(route: RouteSettings, parcel: Parcel, now: float) -> str:
    hook = HookSettings(
        route.name,
        url=route.to,
        secret=route.secret,
        headers=route.headers,
        allow_private=route.allow_private,
        timeout_s=route.timeout_s,
    )
    if not is_slack(route.to):
        return await post(hook, parcel, now)
    body = msgspec.json.encode(slack_payload(_decode(parcel.body))).decode()
    return await post(hook, structs.replace(parcel, body=body), now)


def _mail(route: RouteSettings, message: Message, message_id: str, now: float) -> str:
    from penstock.http.mail import mail_message, mail_server, send_mail

    server = mail_server(route.to)
    mail = mail_message(server, subject_of(message), text_of(message), message_id, now)
    return send_mail(server, mail, route.timeout_s)
