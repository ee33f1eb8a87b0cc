"""HTTPS through a proxy: a tunnel that sees the host and nothing else, and whose credentials stay with it."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import Any

import pytest

from penstock.http.failures import AddressRefused, FetchError
from penstock.http.network import AiohttpNetwork, Request
from tests.hostile.loopback import Names
from tests.hostile.test_hostile_network import PEM

HOST = "shop.test"
CREDENTIALS = base64.b64encode(b"me:proxy-secret").decode()


class Tunnel:
    """A CONNECT proxy with a password, and a TLS server behind it, whatever the host."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.told: list[str] = []  # to the proxy, in clear
        self.asked: list[str] = []  # of the server, through TLS
        self.ports = (0, 0)
        self._serving: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Tunnel:
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(PEM)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=theirs)
        self._proxy = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.ports = tuple(each.sockets[0].getsockname()[1] for each in (self._proxy, self._server))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._proxy.close()
        self._server.close()
        for writer in self._serving.values():
            writer.transport.abort()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _begin(self, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving[task] = writer

    @property
    def url(self) -> str:
        return f"http://me:proxy-secret@127.0.0.1:{self.ports[0]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._begin(writer)
        self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._begin(writer)
        self.told.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self.refuses:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.ports[1])
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


def network() -> AiohttpNetwork:
    resolver = Names([["93.184.216.34"]])
    return AiohttpNetwork(resolver=resolver, tls=ssl.create_default_context(cafile=PEM))


def asked(tunnel: Tunnel, url: str) -> Request:
    return Request("GET", url, {"Authorization": "Bearer site-secret"}, proxy=tunnel.url)


def test_the_proxy_sees_the_host_and_its_own_credentials_and_the_site_sees_neither() -> None:
    async def perform() -> Tunnel:
        ours = network()
        async with Tunnel() as tunnel:
            got = await ours.send(asked(tunnel, f"https://{HOST}/private?x=1"))
            assert got.body == b"hi"
        await ours.close()
        return tunnel

    tunnel = asyncio.run(perform())
    [told], [seen] = tunnel.told, tunnel.asked
    assert told.startswith(f"CONNECT {HOST}:443 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {CREDENTIALS}" in told
    assert "site-secret" not in told
    assert "/private" not in told
    assert seen.startswith("GET /private?x=1 HTTP/1.1\r\n")
    assert "site-secret" in seen
    assert "Proxy-Authorization" not in seen
    assert CREDENTIALS not in seen


def test_certificate_and_address_are_checked_through_a_proxy_and_no_error_has_its_password() -> (
    None
):
    async def perform() -> list[str]:
        ours, errors = network(), list[str]()
        async with Tunnel() as tunnel, Tunnel(refuses=True) as refusing:
            with pytest.raises(FetchError, match="certificate") as wrong_name:
                await ours.send(asked(tunnel, "https://another.example/"))
            with pytest.raises(FetchError, match="407") as refused:
                await ours.send(asked(refusing, f"https://{HOST}/"))
            errors += [str(wrong_name.value), str(refused.value)]
            assert tunnel.asked == []
            before = len(tunnel.told)
            with pytest.raises(AddressRefused):
                await ours.send(asked(tunnel, "https://127.0.0.1/"))
            assert len(tunnel.told) == before
        await ours.close()
        return errors

    told = " ".join(asyncio.run(perform()))
    for secret in ("proxy-secret", "site-secret", CREDENTIALS):
        assert secret not in told
