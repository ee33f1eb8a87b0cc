"""Adding a source: look at what somebody points at, read a sample of it, and write it into penstock.yaml."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.app.views.connectors import AddedView, SampleView
from penstock.connectors.feed.entries import read_entries
from penstock.errors import Refused, UsageError
from penstock.http.failures import FetchError
from penstock.jobs.failures import BadData
from penstock.settings import FILE_NAME, load_settings, normalise_source
from penstock.settings.connector import connector_names, find_connector
from penstock.settings.insertion import is_the_same_but_for, with_source

if TYPE_CHECKING:
    from penstock.http.network import Network
    from penstock.http.response import Response

SAMPLE = 3
_HOST = re.compile(r"[\w-]+(\.[\w-]+)+(:[0-9]+)?(/.*)?|localhost(:[0-9]+)?(/.*)?")
_SITEMAP = re.compile(rb"<(\w{1,20}:)?(urlset|sitemapindex)[\s>]")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be added. Keys that are given replace those that were found."""

    target: str = ""
    name: str = ""
    connector: str = ""
    demo: str = ""
    keys: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a target was recognised as."""

    name: str
    connector: str
    keys: dict[str, Any]
    why: str


def propose(folder: Path, wish: Wish, network: Network | None = None) -> Proposal:
    """What the target is, and the source that would read it. A demo's data is written."""
    if wish.demo:
        found = _demo(folder, wish.demo)
    elif wish.connector:
        find_connector(wish.connector)
        found = Proposal(wish.connector, wish.connector, {}, "named")
    else:
        found = _recognised(folder, wish.target, network)
    name = normalise_source(wish.name or found.name)
    return Proposal(name, found.connector, {**found.keys, **wish.keys}, found.why)


def add(
    folder: Path, proposal: Proposal, *, dry_run: bool = False, network: Network | None = None
) -> AddedView:
    """Read a sample by the source, and write it into penstock.yaml, which is made if there is none.

    Nothing is written if the sample fails: a source that can't be read now is not worth having.
    """
    file = folder / FILE_NAME
    before = file.read_text("utf-8") if file.exists() else f"project: {_project_name(folder)}\n"
    if file.exists() and proposal.name in load_settings(file).sources:
        raise Refused(
            f"there is a source {proposal.name} already", "give another name: --name NAME"
        )
    keys = {"connector": proposal.connector, **proposal.keys}
    text = with_source(before, proposal.name, keys)
    descriptor, beside = tempfile.mkstemp(".yaml", ".penstock-add-", folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write(text)
        samples = _samples(Path(beside), proposal.name, network)
        if file.exists() and not is_the_same_but_for(file, Path(beside), proposal.name):
            raise Refused(f"{FILE_NAME} would not say the same as before; nothing was written")
        if not dry_run:
            if file.exists():
                os.chmod(beside, file.stat().st_mode & 0o777)
            os.replace(beside, file)
    finally:
        Path(beside).unlink(missing_ok=True)
    return AddedView(
        source=proposal.name,
        connector=proposal.connector,
        keys=keys,
        why=proposal.why,
        samples=samples,
        is_written=not dry_run,
    )


def _samples(file: Path, name: str, network: Network | None) -> list[SampleView]:
    """The first documents; an error of the first page is that of the whole act."""
    from penstock.app.performing import in_own_loop
    from penstock.app.project import Project
    from penstock.engine.dry_run import sample_source

    with Project(load_settings(file)) as project:
        tried = in_own_loop(lambda: sample_source(project, name, SAMPLE, network))
    documents = tried.saved
    if not documents:
        failed = next((job for job in tried.failed), None)
        if failed is not None:
            raise Refused(f"it can't be read: {failed.reason}", "nothing was written")
        raise Refused("nothing is there that can be read", "nothing was written")
    return [
        SampleView(
            key=str(each.get("key", "")), title=str(each.get("title", "")), text=_start(each)
        )
        for each in documents[:SAMPLE]
    ]


def _start(document: dict[str, Any]) -> str:
    return " ".join(str(document.get("text") or document.get("data") or "")[:400].split())[:200]


def _project_name(folder: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.resolve().name).strip("-.")
    return name if name and not name[0].isdigit() else "my-project"


def _demo(folder: Path, name: str) -> Proposal:
    sample = find_connector(name).sample(folder / f"demo-{name}")
    if sample is None:
        raise Refused(f"the connector {name} has no demo data")
    return Proposal(sample.name, name, sample.keys, "demo data")


def _recognised(folder: Path, target: str, network: Network | None) -> Proposal:
    path = Path(target).expanduser()
    if os.path.isdir(path):
        return _folder(folder, path)
    if os.path.isfile(path):
        found = _folder(folder, path.parent)
        return Proposal(
            path.stem or found.name, "files", {**found.keys, "include": [f"/{path.name}"]}, "a file"
        )
    if target.lower().startswith(("http://", "https://")):
        return asyncio.run(_site(target, network))
    if "://" not in target and _HOST.fullmatch(target):
        return asyncio.run(_site(f"https://{target}", network))
    raise UsageError(
        f"{target!r} is neither a folder or file that is there nor an address such as acme.com",
        f"connectors: {', '.join(connector_names())}; --connector NAME names one",
    )


def _folder(project: Path, folder: Path) -> Proposal:
    whole, root = folder.resolve(), project.resolve()
    is_inside = whole.is_relative_to(root)
    written = f"./{whole.relative_to(root)}" if is_inside else str(whole)
    return Proposal(whole.name or "files", "files", {"folder": written}, "a folder")


async def _site(url: str, network: Network | None) -> Proposal:
    """A feed, a sitemap, or a page whose site may have a sitemap."""
    looking = _Looking(network)
    try:
        response = await looking.get(url)
        host = urlsplit(response.url).netloc
        kind = _kind(response)
        if kind == "feed":
            return Proposal(f"{host} feed".replace(" ", "-"), "feed", {"url": url}, "a feed")
        if kind == "sitemap":
            return Proposal(host, "web", {"sitemap": url}, "a sitemap")
        if kind:
            raise Refused(f"{url} is {kind}: no connector reads that", "write a pipeline for it")
        origin = f"{urlsplit(response.url).scheme}://{host}"
        is_whole_site = urlsplit(url).path in ("", "/")
        for sitemap in (f"{origin}/sitemap.xml", f"{origin}/sitemap_index.xml"):
            if is_whole_site and await looking.is_sitemap(sitemap):
                return Proposal(host, "web", {"sitemap": sitemap}, "a site with a sitemap")
        scope = {} if is_whole_site else {"scope": "prefix"}
        return Proposal(host, "web", {"url": response.url, **scope}, "a page with links")
    except FetchError as error:
        raise Refused(f"it can't be read: {error}", "nothing was written") from error
    finally:
        await looking.close()


def _kind(response: Response) -> str:
    """What an address is, if it is no page: a feed, a sitemap, or data."""
    if _SITEMAP.search(response.body[:20_000]):
        return "sitemap"
    try:
        read_entries(response.body, response.url)
        return "feed"
    except BadData:
        pass
    if response.content_type in ("application/json", "text/csv"):
        return response.content_type
    return ""


class _Looking:
    """A few requests, by the same way out as all others: robots.txt, private addresses, limits."""

    def __init__(self, network: Network | None) -> None:
        import random

        from penstock.clock import SystemClock
        from penstock.engine.dry_run.services import OpenDoor
        from penstock.http.fetch import Fetcher
        from penstock.http.network import AiohttpNetwork
        from penstock.settings import FetchPolicy

        self._policy = FetchPolicy()
        self._fetcher = Fetcher(
            network or AiohttpNetwork(), SystemClock(), random.Random(), OpenDoor()
        )

    async def get(self, url: str) -> Response:
        return await self._fetcher.fetch(url, self._policy)

    async def is_sitemap(self, url: str) -> bool:
        try:
            return _kind(await self.get(url)) == "sitemap"
        except FetchError:
            return False

    async def close(self) -> None:
        await self._fetcher.close()
