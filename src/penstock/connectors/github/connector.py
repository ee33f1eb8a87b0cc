"""The connector `github`."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.contract import (
    Checkpoint,
    Connector,
    Document,
    Gone,
    Item,
    Listed,
    Sample,
    Unlisted,
)
from penstock.connectors.files.documents import document_of_file
from penstock.connectors.formats.kinds import content_type_of
from penstock.connectors.github.addresses import Part, fingerprint_of, prefix_of
from penstock.connectors.github.git import GitRepository, LocalRepository, RemoteRepository
from penstock.connectors.github.keys import GitHubKeys, is_http
from penstock.connectors.github.listings import Walk
from penstock.connectors.github.recognition import recognised
from penstock.connectors.github.repositories import repositories
from penstock.connectors.github.rest import PER_PAGE, Api, nothing_there
from penstock.connectors.github.rows import Repository, Review, document_of
from penstock.connectors.github.trees import Chosen, listed_entries
from penstock.connectors.listing import KNOWN_BATCH, knowledge_of
from penstock.http.failures import FetchError
from penstock.jobs.failures import Permanent
from penstock.jobs.outcome import Skip
from penstock.pipeline.context import Captured
from penstock.pipeline.fetch_options import FetchOptions

if TYPE_CHECKING:
    from penstock.connectors.target import Recognised, Target
    from penstock.pipeline.context import Context

Found = AsyncIterator[Item | Checkpoint | Unlisted | Listed]
GIT = "git"
RAW = "application/vnd.github.raw+json"
_encode = msgspec.json.Encoder(order="deterministic").encode


class GitHub(Connector[GitHubKeys]):
    """Repositories on GitHub, or one git repository anywhere: what is new or changed since the last run."""

    name = "github"
    summary = "repositories: files, commits, issues, pull requests, comments, releases"
    Settings = GitHubKeys
    extra = "git"
    deletions = "within"
    finds_renames = True
    retry = "provider-safe"
    concurrency = 8
    robots = False

    async def discover(self, ctx: Context, cursors: Mapping[str, Any]) -> Found:
        if self.settings.url is not None:
            async for found in self._git(ctx, cursors):
                yield found
            return
        async for name in repositories(ctx, self.settings):
            async for found in self._repository(ctx, name, cursors):
                yield found

    async def _git(self, ctx: Context, cursors: Mapping[str, Any]) -> Found:
        """The files of a git repository, if its branch is at another commit than the last time."""
        repository = self._git_repository(ctx)
        commit = await repository.head(self.settings.branch)
        if not commit:
            ctx.note("the repository is empty")
            return
        state = f"{commit} {ctx.in_progress.source.version}"
        if ctx.run.kind == "incremental" and await self._is_as_it_was(ctx, cursors.get(GIT), state):
            ctx.note(f"the branch is at {commit[:12]} as before")
            return
        part, chosen, number = Part(self.place.source, ""), Chosen(self.settings), 0
        for item in chosen.items(await repository.entries(commit), part):
            number += 1
            yield item
        for words in chosen.words():
            ctx.note(words)
        yield Listed(part.address)
        yield Checkpoint({"state": state, "files": number}, GIT, ordered=False)

    async def _is_as_it_was(self, ctx: Context, cursor: Any, state: str) -> bool:
        """By its commit; not if more files are known than it had: a run that deleted some was undone."""
        if not isinstance(cursor, dict) or cursor.get("state") != state:
            return False
        known, after = 0, ""
        while pages := await knowledge_of(ctx).pages_after(ctx.in_progress.job, after, KNOWN_BATCH):
            known += sum(page.done_hash is not None for page in pages)
            after = pages[-1].url
        return known <= int(cursor.get("files", 0))

    def _git_repository(self, ctx: Context) -> GitRepository:
        if find_spec("dulwich") is None:
            words = "url needs dulwich: pip install 'penstock[git]'"
            raise Permanent(words, cause="dulwich is not installed")
        url = self.settings.url or ""
        if is_http(url):
            return RemoteRepository(ctx, url, self.settings.max_bytes)
        return LocalRepository(ctx, self.place.root / Path(url).expanduser(), url)

    async def _repository(self, ctx: Context, name: str, cursors: Mapping[str, Any]) -> Found:
        api = Api(ctx, self.settings.api)
        part = Part(self.place.source, name)
        try:
            row = (await api.page(api.at(f"repos/{name}"), Repository)).found
        except FetchError as error:
            problem = f"there is no repository {name}, or the token may not see it"
            yield self._missing(part, error, problem)
            return
        if row.full_name.lower() != name.lower():
            ctx.note(f"{name} is called {row.full_name} now; name it so in penstock.yaml")
        yield part.item("repository", "", row)
        walk = Walk(ctx, self.settings, self.place.source, name, cursors)
        for each, listing in self._listings(walk):
            try:
                async for found in listing:
                    yield found
            except FetchError as error:
                yield self._missing(walk.part(each), error, self._problem(name, each))

    def _missing(self, part: Part, error: FetchError, problem: str) -> Item | Unlisted:
        """What is not there fails alone: all else is read all the same."""
        if error.status != 404:
            return Unlisted(part.address, nothing_there(error))
        address = prefix_of(self.place.source) + part.name
        return Item(part.name, address, about={"kind": "problem", "problem": problem})

    def _problem(self, name: str, part: str) -> str:
        if part in ("commits", "files") and self.settings.branch:
            return f"{name} has no branch {self.settings.branch}"
        return f"{name} has no {part}, or the token may not see them"

    def _listings(self, walk: Walk) -> list[tuple[str, Any]]:
        wanted = set(self.settings.read)
        kinds = {"issues": "issue", "pulls": "pull"}
        has_reviews = "reviews" in wanted
        chosen = frozenset(kinds[each] for each in wanted & kinds.keys())
        found = [
            (bool(chosen) or has_reviews, "issues", walk.issues(chosen, with_reviews=has_reviews)),
            ("comments" in wanted, "comments", walk.comments("issues", "comment")),
            ("comments" in wanted, "review-comments", walk.comments("pulls", "review-comment")),
            ("releases" in wanted, "releases", walk.releases()),
            ("commits" in wanted, "commits", walk.commits()),
            ("files" in wanted, "files", self._files(walk)),
        ]
        return [(name, listing) for is_wanted, name, listing in found if is_wanted]

    async def _files(self, walk: Walk) -> Found:
        part, chosen = walk.part("files"), Chosen(self.settings)
        trees = listed_entries(walk.api(), walk.name, self.settings.branch or "HEAD")
        try:
            async for entries in trees:
                for item in chosen.items(entries, part, walk.name):
                    yield item
        except FetchError as error:
            walk.ctx.note(f"{part.name}: {nothing_there(error)}")
            return
        for words in chosen.words():
            walk.ctx.note(f"{part.name}: {words}")
        yield Listed(part.address)

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document]:
        kind = item.about["kind"]
        if kind == "problem":
            raise Permanent(item.about["problem"], cause="not there")
        if kind == "file":
            yield await self._file(ctx, item)
            return
        if kind == "reviews":
            async for document in self._reviews(ctx, item):
                yield document
            return
        yield await self._row(ctx, item, kind)

    async def _reviews(self, ctx: Context, item: Item) -> AsyncIterator[Document]:
        repository, number = item.about["repository"], item.about["number"]
        api = Api(ctx, self.settings.api)

        async def bring() -> Captured:
            url = api.at(f"repos/{repository}/pulls/{number}/reviews", per_page=PER_PAGE)
            try:
                return Captured(_encode([row async for row in api.rows(url, list[Review])]))
            except FetchError as error:
                if error.status == 404:
                    raise Skip(f"{repository} has no pull request {number} any more") from None
                raise

        response = await ctx.capture(item.address, bring, "application/json", counted=False)
        prefix = item.key.rpartition("/reviews of/")[0]
        for row in msgspec.json.decode(response.body, type=list[Review]):
            body = _encode(msgspec.structs.replace(row, number=number))
            yield document_of("review", f"{prefix}/reviews/{row.id}", body, fingerprint_of(body))

    async def _row(self, ctx: Context, item: Item, kind: str) -> Document:
        async def bring() -> Captured:
            return Captured(_encode(item.about["row"]))

        # Its bytes were counted with the listing.
        response = await ctx.capture(item.address, bring, "application/json", counted=False)
        return document_of(kind, item.key, response.body, response.content_hash)

    async def _file(self, ctx: Context, item: Item) -> Document:
        async def bring() -> Captured:
            return Captured(await self._blob(ctx, item))

        name = item.key.rpartition("/")[2]
        is_local = self.settings.url is not None and not is_http(self.settings.url)
        response = await ctx.capture(item.address, bring, content_type_of(name), counted=is_local)
        document = await document_of_file(ctx, item.key, response)
        return msgspec.structs.replace(document, meta={**document.meta, "blob": item.about["blob"]})

    async def _blob(self, ctx: Context, item: Item) -> bytes:
        blob, repository = item.about["blob"], item.about["repository"]
        if not repository:
            return self._bounded(await self._git_repository(ctx).blob(blob))
        api = Api(ctx, self.settings.api)
        url = api.at(f"repos/{repository}/git/blobs/{blob}")
        try:
            response = await ctx.send(url, FetchOptions(headers={"Accept": RAW}))
        except FetchError as error:
            if error.status == 404:
                raise Gone("its content is not in the repository any more") from None
            raise
        return self._bounded(response.body)

    def _bounded(self, body: bytes) -> bytes:
        if len(body) > self.settings.max_bytes:
            raise Skip(f"larger than max_bytes ({self.settings.max_bytes:,})")
        return body

    async def digest(self, ctx: Context, item: Item) -> str:
        try:
            return hashlib.sha256(await self._blob(ctx, item)).hexdigest()
        except (Gone, Skip):
            return ""

    def key_of(self, address: str) -> str:
        return address.removeprefix(prefix_of(self.place.source))

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        return recognised(target)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"repositories": ["octocat/hello-world"]}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        from penstock.connectors.github.demo import write_demo

        return write_demo(folder)
