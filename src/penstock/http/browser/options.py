"""How a page is drawn: what a step asks for."""

from __future__ import annotations

from typing import Literal

import msgspec

Screenshot = Literal["never", "failed", "always"]
Blocked = Literal["image", "font", "media"]

# What the address of a picture begins with, before that of its page.
SCREENSHOT = "screenshot:"
LOAD, IDLE, SELECTOR = "load", "idle", "selector "


class RenderOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`wait` is `load`, `idle`, or `selector ` and a CSS selector. A `folder` replaces the network."""

    wait: str = IDLE
    wait_timeout_s: float = 20.0
    screenshot: Screenshot = "failed"
    viewport: tuple[int, int] = (1280, 800)
    block: tuple[Blocked, ...] = ("image", "font", "media")
    scripts: bool = True
    # In bytes, of one page.
    memory: int = 512_000_000
    pages_per_browser: int = 100
    # The path of chromium; empty to look for it.
    browser: str = ""
    folder: str = ""
