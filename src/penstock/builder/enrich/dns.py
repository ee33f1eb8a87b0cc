"""DNS over HTTPS in JSON, so that a lookup is a request like any other: limited, kept and replayed."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from penstock.builder.enrich.requests import Ask, mapping, rows, with_query
from penstock.builder.normalize.text import clean

KINDS = {"A": 1, "NS": 2, "MX": 15, "AAAA": 28}
NO_ERROR, NO_SUCH_NAME = 0, 3


class DnsAnswer(msgspec.Struct, frozen=True):
    """What the DNS says about a name: None where it did not say anything certain."""

    exists: bool | None = None
    values: tuple[str, ...] = ()


class DnsProvider(Protocol):
    """Asks for records of a name and reads the answer."""

    def ask(self, name: str, kind: str) -> Ask: ...

    def read(self, answer: Any, kind: str) -> DnsAnswer: ...


class JsonDns:
    """The JSON API of public resolvers: `GET /resolve?name=…&type=MX`; the address is the endpoint's."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, name: str, kind: str) -> Ask:
        return Ask(
            with_query(self._url, "", name=name, type=kind),
            headers={"Accept": "application/dns-json"},
        )

    def read(self, answer: Any, kind: str) -> DnsAnswer:
        said = mapping(answer)
        status = said.get("Status")
        if status == NO_SUCH_NAME:
            return DnsAnswer(False)
        if status != NO_ERROR:
            return DnsAnswer()
        found = (
            each.get("data") for each in rows(said.get("Answer")) if each.get("type") == KINDS[kind]
        )
        values = tuple(text for value in found if (text := clean(value, 300)))
        return DnsAnswer(True, values)


def takes_mail(mx: DnsAnswer, address: DnsAnswer | None = None) -> bool | None:
    """Whether a domain takes mail: by its MX, or without one by its address. None if the DNS did not say.

    A lone `.` as MX says that it takes none.
    """
    if mx.exists is False:
        return False
    if mx.values:
        return any(value.split()[-1] != "." for value in mx.values)
    if mx.exists is None or address is None:
        return None
    return bool(address.values)
