"""The connector `api`: the conformance suite, on pages that lead to each other and on numbered ones."""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock.testing import RawResponse, Request, answer
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place

SITE = "https://api.example"
FEW = 20


class ApiPlace(Place):
    """Pages that name the next one; the key is in the query, and the API repeats it in its links."""

    connector = "api"
    about = {"fetch": {"robots": False}}  # noqa: RUF012
    is_locked = False

    def keys(self) -> dict[str, Any]:
        return {"url": f"{SITE}/items", "auth": {"query": "api_key", "value": "${SECRET}"}}

    def put(self, name: str, text: str) -> bool:
        self.texts[name] = text
        return True

    def remove(self, name: str) -> None:
        del self.texts[name]

    def key(self, name: str) -> str:
        return f"i-{name}"

    def lock(self) -> bool:
        self.is_locked = True
        return True

    @property
    def size(self) -> int:
        return 2 if len(self.texts) <= FEW else 50

    def records(self, start: int, size: int) -> list[dict[str, Any]]:
        some = islice(self.texts.items(), start, start + size)
        return [{"id": self.key(name), "text": text} for name, text in some]

    def page(self, request: Request) -> RawResponse:
        asked = {name: each[0] for name, each in parse_qs(urlsplit(request.url).query).items()}
        if self.is_locked or asked.get("api_key") != self.secret:
            return answer("", status=401)
        start = int(asked.get("from", 0))
        more = f"{SITE}/items?api_key={self.secret}&from={start + self.size}"
        found = {
            "items": self.records(start, self.size),
            "next": more if start + self.size < len(self.texts) else None,
        }
        return tagged(request, found)


def tagged(request: Request, found: Any) -> RawResponse:
    """JSON with an ETag, by which it is not sent again."""
    body = json.dumps(found).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()}"'
    if request.headers.get("If-None-Match") == tag:
        return answer("", status=304)
    return answer(body, headers={"Content-Type": "application/json", "ETag": tag})


class TestApi(ConnectorSuite):
    place = ApiPlace


@pytest.mark.torture
class TestManyPagesOfAnApi(ConnectorSuite):
    place = ApiPlace
    many, writes = 25_000, ALL_WRITES


class NumberedPlace(ApiPlace):
    """Numbered pages that are asked for by POST, and read side by side."""

    def keys(self) -> dict[str, Any]:
        return {
            "url": f"{SITE}/search",
            "auth": {"bearer": "${SECRET}"},
            "body": {"sort": "name"},
            "paging": {"kind": "offset", "param": "page.offset", "size": 2, "total": "total"},
        }

    def page(self, request: Request) -> RawResponse:
        if self.is_locked or request.headers.get("Authorization") != f"Bearer {self.secret}":
            return answer("", status=403)
        asked = json.loads(request.body or b"")
        assert asked["sort"] == "name"
        start = asked.get("page", {}).get("offset", 0)
        found = {"items": self.records(start, self.size), "total": len(self.texts)}
        return tagged(request, found)


class TestNumberedApi(ConnectorSuite):
    place = NumberedPlace
    writes = 4
