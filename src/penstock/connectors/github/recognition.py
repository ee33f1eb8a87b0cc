"""What `penstock add` is pointed at: a repository on GitHub, its owner, or a git repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.connectors.target import Recognised

if TYPE_CHECKING:
    from penstock.connectors.target import Target

HOSTS = ("github.com", "www.github.com")
# First words of paths on github.com that are no owner.
RESERVED = frozenset(
    "about apps collections contact customer-stories enterprise events explore features issues login "
    "marketplace new notifications orgs organizations pricing pulls search security settings signup "
    "site sponsors stars team topics trending".split()
)
_WORD = re.compile(r"[A-Za-z0-9._-]{1,100}")


def recognised(target: Target) -> Recognised | None:
    if target.path is not None:
        return _folder(target, target.path)
    if not target.url or target.response is not None:
        return None
    url = urlsplit(target.url)
    words = [word for word in url.path.split("/") if word]
    if (url.hostname or "") in HOSTS:
        return _on_github(words)
    if url.path.endswith(".git"):
        name = words[-1].removesuffix(".git")
        return Recognised(keys={"url": target.url}, why="a git repository", name=name, fit=90)
    return None


def _on_github(words: list[str]) -> Recognised | None:
    if not words or words[0] in RESERVED or not all(map(_WORD.fullmatch, words[:2])):
        return None
    if len(words) == 1:
        keys = {"owner": words[0]}
        return Recognised(keys=keys, why="an owner of repositories", name=words[0], fit=90)
    name = words[1].removesuffix(".git")
    full = f"{words[0]}/{name}"
    return Recognised(
        keys={"repositories": [full]}, why="a repository on GitHub", name=name, fit=90
    )


def _folder(target: Target, path: Path) -> Recognised | None:
    """A bare repository; the folder that somebody works in is read as files."""
    is_bare = all((path / name).exists() for name in ("HEAD", "objects", "refs"))
    if not is_bare:
        return None
    name = path.name.removesuffix(".git")
    keys = {"url": target.written(path)}
    return Recognised(keys=keys, why="a git repository", name=name, fit=60)
