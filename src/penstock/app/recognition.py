"""Recognition: which connector reads what somebody points at. The connectors say so themselves."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors import Connector, Recognised, Target
from penstock.errors import ConfigError, Refused, UsageError
from penstock.http.addresses import look_at
from penstock.http.failures import AddressRefused, FetchError
from penstock.settings.connector import connector_names, find_connector
from penstock.settings.fetch import USUAL, FetchPolicy

if TYPE_CHECKING:
    from penstock.http.network import Network
    from penstock.http.response import Response

HTTP = ("http://", "https://")
_HOST = re.compile(r"[\w-]+(\.[\w-]+)+(:[0-9]+)?(/.*)?|localhost(:[0-9]+)?(/.*)?")
_MAILBOX = re.compile(r"[^@\s/:]{1,200}@([\w-]+(?:\.[\w-]+)+)")
BUCKETS = ("s3://", "gs://", "az://")

Found = tuple[str, Recognised]


def recognise(
    root: Path,
    text: str,
    connector: str = "",
    network: Network | None = None,
    policy: FetchPolicy = USUAL,
) -> list[Found]:
    """The connectors that read a target, the best first; with a name, this one alone. At least one."""
    return asyncio.run(_recognise(target_of(root, text), connector, network, policy))


def target_of(root: Path, text: str) -> Target:
    """A folder or file that is there, else an address."""
    path = Path(text).expanduser()
    if text and path.exists():
        return Target(text=text, root=root, path=path.resolve())
    if text.lower().startswith(HTTP):
        try:
            look_at(text)
        except AddressRefused as error:
            raise UsageError(f"{text!r} can't be an address: {error.message}") from None
        return Target(text=text, root=root, url=text)
    if "://" not in text and _HOST.fullmatch(text):
        return Target(text=text, root=root, url=f"https://{text}")
    return Target(text=text, root=root)


async def _recognise(
    target: Target, connector: str, network: Network | None, policy: FetchPolicy
) -> list[Found]:
    names = [connector] if connector else connector_names()
    found = await _asked(names, target)
    kind = ""
    if not found and target.url:
        looking = _Looking(network, policy)
        try:
            response = await looking.get(target.url)
            kind = response.content_type
            with_response = msgspec.structs.replace(target, response=response, fetch=looking.get)
            found = await _asked(names, with_response)
        except FetchError as error:
            raise unreadable(f"it can't be read: {error}") from error
        finally:
            await looking.close()
    if not found:
        raise _unrecognised(target, connector, kind)
    return sorted(found, key=lambda each: -each[1].fit)


async def _asked(names: list[str], target: Target) -> list[Found]:
    """What each says; one that can't be loaded is listed with its reason by `connectors`, and left out."""
    found = []
    for name in names:
        try:
            connector: type[Connector[Any]] = find_connector(name)
        except ConfigError:
            if len(names) == 1:
                raise
            continue
        recognised = await connector.recognise(target)
        if recognised is not None:
            found.append((name, recognised))
    return found


def unreadable(words: str) -> Refused:
    """A refusal, with the key that permits it where there is one."""
    if "fetch.allow_private" in words:
        return Refused(words, "if you trust it, add it with --set fetch.allow_private=true")
    return Refused(words, "nothing was written")


def _unrecognised(target: Target, connector: str, kind: str) -> Refused | UsageError:
    if connector:
        return UsageError(
            f"the connector {connector} does not recognise {target.text!r}",
            "leave it out, and give its keys by --set KEY=VALUE",
        )
    if target.url:
        what = f"{target.url} is {kind or 'of no known type'}: no connector recognises that"
        return Refused(
            what, "name a connector: --connector NAME --set KEY=VALUE; or write a pipeline"
        )
    if host := _MAILBOX.fullmatch(target.text):
        words = f"{target.text!r} is a mail address, and no address of a server"
        return UsageError(words, f"name its server: imaps://USER@imap.{host[1]}/INBOX")
    if target.text.lower().startswith(BUCKETS):
        return UsageError(
            f"{target.text!r} names no table in a bucket",
            "name an object or a pattern: s3://BUCKET/dumps/*.csv.gz",
        )
    return UsageError(
        f"{target.text!r} is neither a folder or file that is there nor an address such as acme.com",
        f"connectors: {', '.join(connector_names())}; --connector NAME names one",
    )


class _Looking:
    """A few requests, by the same way out as all others: robots.txt, private addresses, limits."""

    def __init__(self, network: Network | None, policy: FetchPolicy) -> None:
        import random

        from penstock.clock import SystemClock
        from penstock.engine.dry_run.services import OpenDoor
        from penstock.http.fetch import Fetcher
        from penstock.http.network import AiohttpNetwork

        self._policy = policy
        self._fetcher = Fetcher(
            network or AiohttpNetwork(), SystemClock(), random.Random(), OpenDoor()
        )

    async def get(self, url: str) -> Response:
        return await self._fetcher.fetch(url, self._policy)

    async def close(self) -> None:
        await self._fetcher.close()
