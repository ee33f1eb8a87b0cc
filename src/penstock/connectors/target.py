"""Targets: what somebody wants to read, before it is known which connector does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from penstock.http.response import Response


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """An address, a folder or a file, as it was typed.

    Connectors are asked twice about an http or https address: at first by `url` alone, and, if none of them
    recognises that, with the `response` to it. `fetch` gets further pages of the site; it obeys robots.txt
    and raises FetchError.
    """

    text: str
    # The folder of penstock.yaml.
    root: Path
    # Where it is a folder or a file that is there: its whole path.
    path: Path | None = None
    # Where it is an http or https address; `acme.com` counts as https://acme.com.
    url: str = ""
    response: Response | None = None
    fetch: Callable[[str], Awaitable[Response]] | None = None

    def written(self, path: Path) -> str:
        """A path as penstock.yaml has it: relative to it, if it is below its folder."""
        root = self.root.resolve()
        if path == root:
            return "."
        return f"./{path.relative_to(root)}" if path.is_relative_to(root) else str(path)


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a source that would read a target, and what it is in a few words: `a feed`.

    Of several connectors that recognise a target, the one with the highest `fit` is proposed: 10 for what
    fits anything of the sort (a folder, a page), 50 for what was looked into (a feed), 90 for an address that
    can be nothing else.
    """

    keys: dict[str, Any]
    why: str
    # The name of the source, unless another one is given.
    name: str = ""
    fit: int = 50
