"""Hosts that are none: network namespaces, each with one cable, to this machine and nothing else.

Who runs in one reaches the tests' server at an address that only the cable has. With its plug pulled no
packet passes, and nobody is told. Needs root and `ip`; `why_not` says why there are none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from itertools import count
from types import TracebackType

# Set aside for tests of networks (RFC 2544); no packet of it leaves the machine.
NETWORK = "198.18"
NUMBERS = count()


@cache
def why_not() -> str:
    """Empty where namespaces can be had."""
    if shutil.which("ip") is None:
        return "there is no `ip` (apt-get install iproute2)"
    try:
        with Namespace():
            return ""
    except subprocess.CalledProcessError as error:
        return f"`{' '.join(error.cmd)}` failed: {error.stderr.strip()}"


class Namespace:
    """One host, for as long as the block lasts. `server` is this machine's address on its cable."""

    def __init__(self) -> None:
        number = next(NUMBERS) % 60
        unique = f"{os.getpid() % 10_000_000}-{number}"
        self.name = f"penstock-{unique}"
        self._near_end, self._far_end = f"pa{unique}", f"pb{unique}"
        block = f"{NETWORK}.{os.getpid() % 256}"
        self.server, self._host = f"{block}.{4 * number + 1}", f"{block}.{4 * number + 2}"

    def __enter__(self) -> Namespace:
        try:
            _ip("netns", "add", self.name)
            _ip("link", "add", self._near_end, "type", "veth", "peer", self._far_end)
            _ip("link", "set", self._far_end, "netns", self.name)
            _ip("addr", "add", f"{self.server}/30", "dev", self._near_end)
            _ip("link", "set", self._near_end, "up")
            _ip("-n", self.name, "addr", "add", f"{self._host}/30", "dev", self._far_end)
            _ip("-n", self.name, "link", "set", self._far_end, "up")
            _ip("-n", self.name, "link", "set", "lo", "up")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def command(self, *words: str) -> list[str]:
        """What to run here so that these words are run there."""
        return ["ip", "netns", "exec", self.name, *words]

    def pids(self) -> list[int]:
        """Everything that runs there."""
        return [int(pid) for pid in _ip("netns", "pids", self.name).split()]

    def pull_plug(self) -> None:
        _ip("link", "set", self._near_end, "down")

    def plug_in(self) -> None:
        _ip("link", "set", self._near_end, "up")

    def _remove(self) -> None:
        for words in (["link", "del", self._near_end], ["netns", "del", self.name]):
            subprocess.run(["ip", *words], capture_output=True)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
    return done.stdout
