"""The files of a repository: the entries of a tree that are meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from penstock.connectors.contract import Item
from penstock.connectors.files.globs import Globs
from penstock.connectors.files.paths import is_too_long
from penstock.connectors.github.rest import Api, Page
from penstock.counting import count
from penstock.jobs.failures import BadData

if TYPE_CHECKING:
    from penstock.connectors.github.addresses import Part
    from penstock.connectors.github.keys import GitHubKeys

LINK, SUBMODULE = "120000", "160000"
# Entries of one tree with all that is below it: a few trees can name each other without end.
MOST_ENTRIES = 1_000_000
DEEPEST = 100


class Entry(msgspec.Struct, frozen=True):
    """What a tree has under a path. `size` is None where the tree does not say."""

    path: str
    mode: str
    type: str
    sha: str
    size: int | None = None


class Tree(msgspec.Struct, frozen=True):
    tree: list[Entry]
    truncated: bool = False


class Chosen:
    """Which entries are files to be read; counts what is left out."""

    def __init__(self, keys: GitHubKeys) -> None:
        self._include, self._exclude = Globs(keys.include), Globs(keys.exclude)
        self._most = keys.max_bytes
        self._met = 0
        self.left_out: Counter[str] = Counter()

    def items(self, entries: Iterable[Entry], part: Part, repository: str = "") -> Iterator[Item]:
        for entry in entries:
            self._met += 1
            if self._met > MOST_ENTRIES:
                raise BadData(f"more than {MOST_ENTRIES:,} entries in its trees", cause="huge tree")
            if self._is_file(entry) and self._is_meant(entry.path):
                if (entry.size or 0) > self._most:
                    self.left_out[f"larger than max_bytes ({self._most:,})"] += 1
                    continue
                item = part.file(entry.path, entry.sha, repository)
                if not is_too_long(item.address):
                    yield item
                else:
                    self.left_out["with a path that is too long"] += 1

    def _is_file(self, entry: Entry) -> bool:
        """A link is a path that the repository's author chose; a submodule is another repository."""
        if entry.mode in (LINK, SUBMODULE):
            kind = "that are links" if entry.mode == LINK else "that are submodules"
            self.left_out[kind] += 1
            return False
        return entry.type == "blob"

    def _is_meant(self, path: str) -> bool:
        if self._include and not self._include.decide(path, False):
            return False
        folders = [at for at, letter in enumerate(path) if letter == "/"]
        excluded = [self._exclude.decide(path[:at], True) for at in folders]
        return not (any(excluded) or self._exclude.decide(path, False))

    def words(self) -> list[str]:
        """What was left out, in a line for each reason."""
        return [f"{count(number, 'file')} {why} left out" for why, number in self.left_out.items()]


async def listed_entries(api: Api, repository: str, tree: str) -> AsyncIterator[list[Entry]]:
    """All entries of a tree, by the API. One that is too large to be listed at once is listed by folders."""
    waiting = [(tree, "", 0)]
    while waiting:
        sha, prefix, depth = waiting.pop()
        page = await _tree(api, repository, sha, is_recursive=True)
        if not page.found.truncated:
            yield [_below(prefix, entry) for entry in page.found.tree]
            continue
        if depth >= DEEPEST:
            raise BadData("its folders are nested too deeply", cause="deep tree")
        flat = await _tree(api, repository, sha, is_recursive=False)
        if flat.found.truncated:
            raise BadData(f"the folder {prefix or '/'} has too many entries", cause="huge tree")
        yield [_below(prefix, entry) for entry in flat.found.tree]
        waiting += [
            (entry.sha, f"{prefix}{entry.path}/", depth + 1)
            for entry in flat.found.tree
            if entry.type == "tree"
        ]


async def _tree(api: Api, repository: str, sha: str, *, is_recursive: bool) -> Page[Tree]:
    path = f"repos/{repository}/git/trees/{sha}"
    return await api.page(api.at(path, recursive=int(is_recursive)), Tree)


def _below(prefix: str, entry: Entry) -> Entry:
    if not prefix:
        return entry
    return msgspec.structs.replace(entry, path=prefix + entry.path)
