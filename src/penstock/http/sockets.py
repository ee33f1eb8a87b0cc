"""Sockets for protocols that are not HTTP: connected by the loop, and then blocking, with a timeout."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence

import aiohttp

OpenSocket = Callable[[aiohttp.AddrInfoType], socket.socket]


async def connected(
    addresses: Sequence[aiohttp.AddrInfoType], open_socket: OpenSocket
) -> socket.socket:
    """A socket to the first of these addresses that takes the connection."""
    problem: OSError = ConnectionError("the host has no address")
    for info in addresses:
        try:
            return await _connected(open_socket(info), info)
        except OSError as error:
            problem = error
    raise problem


async def _connected(opened: socket.socket, info: aiohttp.AddrInfoType) -> socket.socket:
    try:
        await asyncio.get_running_loop().sock_connect(opened, info[4])
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened
    except BaseException:
        opened.close()
        raise


async def secured(opened: socket.socket, tls: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    """The socket behind TLS, with its certificate checked for this host. Takes the socket over."""
    try:
        wrapped = tls.wrap_socket(opened, server_hostname=host, do_handshake_on_connect=False)
    except BaseException:
        opened.close()
        raise
    try:
        await _shake_hands(wrapped)
        return wrapped
    except BaseException:
        wrapped.close()
        raise


async def _shake_hands(wrapped: ssl.SSLSocket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            return wrapped.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(wrapped, loop.add_reader, loop.remove_reader)
        except ssl.SSLWantWriteError:
            await _ready(wrapped, loop.add_writer, loop.remove_writer)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def _ready(
    wrapped: ssl.SSLSocket, watch: Callable[..., object], leave: Callable[[int], object]
) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    watch(wrapped.fileno(), _wake, ready)
    try:
        await ready
    finally:
        leave(wrapped.fileno())
