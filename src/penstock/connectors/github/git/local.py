"""A repository in a folder, read by dulwich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.contract import Gone
from penstock.connectors.github.git.tree_walk import entries_of
from penstock.connectors.github.trees import Entry
from penstock.jobs.failures import BadData, Permanent

if TYPE_CHECKING:
    from penstock.pipeline.context import Context


class LocalRepository:
    """A bare repository, or one that somebody works in: what is committed, not what lies in the folder."""

    def __init__(self, ctx: Context, path: Path, shown: str) -> None:
        self._ctx = ctx
        self._path = path
        self._shown = shown

    async def head(self, branch: str | None) -> str:
        """The commit of a branch; empty if the repository has none yet."""
        return await self._ctx.in_thread(lambda: self._head(branch))

    def _head(self, branch: str | None) -> str:
        name = f"refs/heads/{branch}" if branch else "HEAD"
        with self._opened() as repository:
            try:
                return str(repository.refs[name.encode()].decode())
            except KeyError:
                if branch:
                    words = f"there is no branch {branch}"
                    raise Permanent(words, cause="no such branch") from None
                return ""

    async def entries(self, commit: str) -> Iterable[Entry]:
        return await self._ctx.in_thread(lambda: self._entries(commit))

    def _entries(self, commit: str) -> list[Entry]:
        with self._opened() as repository:
            return list(entries_of(lambda name: _raw(repository, name), commit))

    async def blob(self, name: str) -> bytes:
        return await self._ctx.in_thread(lambda: self._blob(name))

    def _blob(self, name: str) -> bytes:
        with self._opened() as repository:
            try:
                return _raw(repository, name)
            except BadData:
                raise Gone("its content is not in the repository any more") from None

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        from dulwich.errors import NotGitRepository
        from dulwich.repo import Repo

        try:
            repository = Repo(str(self._path))
        except NotGitRepository:
            words = f"there is no git repository at {self._shown}"
            raise Permanent(words, cause="no such repository") from None
        try:
            yield repository
        finally:
            repository.close()


def _raw(repository: Any, name: str) -> bytes:
    try:
        return bytes(repository.object_store.get_raw(name.encode())[1])
    except KeyError:
        raise BadData("an object is missing in the repository", cause="a broken pack") from None
