"""The walk through the trees of a commit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from penstock.connectors.github.trees import DEEPEST, Entry
from penstock.jobs.failures import BadData

# Names that mean something to a file system or to git itself; an honest repository has none of them.
_ODD = frozenset({b"", b".", b"..", b".git"})
_FOLDER = 0o040000


def entries_of(get: Callable[[str], bytes], commit: str) -> Iterator[Entry]:
    """Every entry below the tree of a commit, folder by folder; `get` brings objects by name."""
    waiting = [(tree_of(get(commit)), "", 0)]
    while waiting:
        tree, prefix, depth = waiting.pop()
        if depth > DEEPEST:
            raise BadData("its folders are nested too deeply", cause="deep tree")
        for name, mode, sha in _parsed(get(tree)):
            if name.lower() in _ODD or b"/" in name:
                continue
            path = prefix + os.fsdecode(name)
            is_folder = mode == _FOLDER
            if is_folder:
                waiting.append((sha, f"{path}/", depth + 1))
            yield Entry(path, f"{mode:06o}", "tree" if is_folder else "blob", sha)


def trees_of(get: Callable[[str], bytes], commit: str) -> Iterator[str]:
    """The names of all trees of a commit, each once, before what is below it."""
    waiting = [tree_of(get(commit))]
    met = set(waiting)
    while waiting:
        tree = waiting.pop()
        yield tree
        below = {sha for _, mode, sha in _parsed(get(tree)) if mode == _FOLDER}
        waiting += sorted(below - met)
        met |= below


def tree_of(commit: bytes) -> str:
    head, _, _ = commit.partition(b"\n")
    word, _, sha = head.partition(b" ")
    if word != b"tree" or len(sha) != 40:
        raise BadData("a commit has no tree", cause="a broken commit")
    return sha.decode("ascii", "replace")


def _parsed(tree: bytes) -> list[tuple[bytes, int, str]]:
    from dulwich.errors import ObjectFormatException
    from dulwich.objects import parse_tree

    try:
        return [(bytes(name), mode, sha.decode()) for name, mode, sha in parse_tree(tree, 20)]
    except (ObjectFormatException, ValueError, IndexError) as error:
        raise BadData(f"a tree can't be read: {str(error)[:100]}", cause="a broken tree") from None
