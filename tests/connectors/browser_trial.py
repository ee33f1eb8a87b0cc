"""One real browser for many tests: it serves one event loop after the other."""

from __future__ import annotations

import asyncio
import os
import random
import selectors
from collections.abc import Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from penstock.clock import SystemClock
from penstock.engine.dry_run.services import OpenDoor
from penstock.http.browser.browsers import Browsers
from penstock.http.browser.options import RenderOptions
from penstock.http.browser.renderer import Rendered, Renderer
from penstock.http.fetch import Fetcher
from penstock.http.network import Network
from penstock.settings import FetchPolicy
from penstock.testing import RawResponse, ScriptedNetwork, VirtualClock
from tests.programs import needed

SITE = "https://shop.example"
OPEN = FetchPolicy(robots=False)
# As little of a machine as is needed to be sure: others wait for it, too.
QUICK = RenderOptions(
    wait="load", wait_timeout_s=60.0, screenshot="never", pages_per_browser=10_000
)


class SharedBrowsers:
    """The browsers of a test module. `clock` is that of the simulation that runs, if one does."""

    def __init__(self) -> None:
        self.clock: VirtualClock | None = None
        self.browsers = Browsers(self._hold)
        self.path = str(needed("chromium"))

    def _hold(self) -> AbstractContextManager[None]:
        return nullcontext() if self.clock is None else self.clock.held()


@dataclass
class Drawing:
    """Pages of a made-up site, drawn for real."""

    shared: SharedBrowsers
    pages: Mapping[str, str | bytes | RawResponse] = field(default_factory=dict)
    network: Network | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        self.shared.clock = None
        return asyncio.run(work)

    def draw(
        self, path: str, options: RenderOptions = QUICK, policy: FetchPolicy = OPEN
    ) -> Rendered:
        found: Rendered = self.run(self.drawn(path, options, policy))
        return found

    async def drawn(
        self, path: str, options: RenderOptions = QUICK, policy: FetchPolicy = OPEN
    ) -> Rendered:
        known = {f"{SITE}{name}" if name[0] == "/" else name: v for name, v in self.pages.items()}
        network = self.network or ScriptedNetwork.of_pages(known)
        clock = SystemClock()
        fetcher = Fetcher(network, clock, random.Random(1), OpenDoor())
        url = path if "://" in path else SITE + path
        try:
            renderer = Renderer(fetcher, self.shared.browsers, clock)
            return await renderer.render(url, policy, options, source="shop")
        finally:
            await fetcher.close()


def wait_for_end(pid: int, seconds: float = 60.0) -> bool:
    """Whether a process has ended within this time; it need not be a child of ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            return bool(selector.select(seconds))
    finally:
        os.close(descriptor)
