"""What a checkup asks of the network: names, and this machine itself. Nothing is fetched."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from time import monotonic

from penstock.http.localhost import LOOPBACK, is_localhost

ANSWER_S = 2.0


def resolve_all(hosts: Sequence[str], longest_s: float) -> dict[str, str]:
    """Why each host has no address; '' for one that has. A resolver that hangs is not waited for."""
    found = dict.fromkeys(hosts, f"no answer in {longest_s:.0f} s")
    # Daemons: getaddrinfo can't be interrupted, and must not keep the process from ending.
    threads = [threading.Thread(target=_look_up, args=(h, found), daemon=True) for h in hosts]
    for thread in threads:
        thread.start()
    until = monotonic() + longest_s
    for thread in threads:
        thread.join(max(0.0, until - monotonic()))
    return dict(found)


def _look_up(host: str, found: dict[str, str]) -> None:
    try:
        if not is_localhost(host):
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        found[host] = ""
    except socket.gaierror as error:
        found[host] = error.strerror or str(error)
    except (OSError, UnicodeError) as error:
        found[host] = str(error)


def listens_on_loopback() -> str:
    """Why nothing can be listened for and reached on loopback; '' if it can."""
    try:
        with socket.create_server((LOOPBACK, 0)) as server:
            server.settimeout(ANSWER_S)
            with socket.create_connection(server.getsockname(), ANSWER_S):
                server.accept()[0].close()
    except OSError as error:
        return error.strerror or str(error)
    return ""
