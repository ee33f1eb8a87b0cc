"""GitHub's REST API as it is documented, to be changed by tests: ETags, Link, since, limits, renames."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import web

from penstock.testing import RawResponse, Request, answer

API = "https://api.github.example"
START = datetime(2026, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


def git_name(kind: str, body: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(body)}\0".encode() + body, usedforsecurity=False).hexdigest()


@dataclass
class Repository:
    """What a repository has; rows as the API shows them."""

    id: int
    name: str
    issues: dict[int, Row] = field(default_factory=dict)
    comments: dict[int, Row] = field(default_factory=dict)
    review_comments: dict[int, Row] = field(default_factory=dict)
    reviews: dict[int, list[Row]] = field(default_factory=dict)
    releases: list[Row] = field(default_factory=list)
    # The newest first, by the branch.
    commits: list[Row] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    about: Row = field(default_factory=dict)
    # Entries of the tree beside files: links, submodules.
    entries: list[Row] = field(default_factory=list)
    # Parts that answer with a status of their own: {"issues": 410}.
    refusals: dict[str, int] = field(default_factory=dict)


class GitHubServer:
    """Answers requests to the API; `now` moves by a minute and a half with every change."""

    def __init__(self, token: str = "", api: str = API) -> None:
        self.token = token
        self.api = api
        self.now = START
        self.repositories: dict[str, Repository] = {}
        self.renamed: dict[str, str] = {}
        # Requests that were counted against the limit: those that were not answered with 304.
        self.counted: list[str] = []
        self.asked: list[str] = []
        self.is_locked = False
        # So many rows make a tree too large to be listed at once.
        self.most_entries = 100_000

    def tick(self, seconds: float = 90) -> str:
        self.now += timedelta(seconds=seconds)
        return f"{self.now:%Y-%m-%dT%H:%M:%SZ}"

    def add(self, name: str, **about: Any) -> Repository:
        made = Repository(1000 + len(self.repositories), name, about=about)
        self.repositories[name] = made
        return made

    def issue(self, name: str, number: int, title: str, body: str, **about: Any) -> Row:
        repository, moment = self.repositories[name], self.tick(about.pop("after", 90))
        known = repository.issues.get(number, {"created_at": moment})
        repository.issues[number] = {
            "id": 9000 + number,
            "node_id": "I_x",
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "user": {"login": "octocat", "id": 1, "type": "User"},
            "labels": [{"id": 1, "name": "bug", "color": "f00"}],
            "assignees": [],
            "milestone": None,
            "comments": 0,
            "closed_at": None,
            "html_url": f"https://github.example/{name}/issues/{number}",
            "url": f"{self.api}/repos/{name}/issues/{number}",
            "reactions": {"total_count": 0},
            **known,
            "updated_at": moment,
            **({"title": title, "body": body} | about),
        }
        return repository.issues[number]

    def review(self, name: str, number: int, state: str, body: str) -> Row:
        """A review, which updates its pull request."""
        repository, moment = self.repositories[name], self.tick()
        rows = repository.reviews.setdefault(number, [])
        rows.append(
            {
                "id": 70_000 + 1_000 * number + len(rows),
                "node_id": "PRR_x",
                "user": {"login": "hubot", "id": 2, "type": "User"},
                "body": body,
                "state": state,
                "html_url": f"https://github.example/{name}/pull/{number}#review",
                "commit_id": git_name("commit", body.encode()),
                "submitted_at": moment,
                "author_association": "MEMBER",
            }
        )
        repository.issues[number]["updated_at"] = moment
        return rows[-1]

    def commit(self, name: str, message: str, parents: list[str] | None = None) -> str:
        """On top of the branch."""
        repository, moment = self.repositories[name], self.tick()
        above = [repository.commits[0]["sha"]] if repository.commits else []
        row = {
            "commit": {
                "message": message,
                "author": {"name": "Mona", "email": "mona@github.example", "date": moment},
                "committer": {"name": "Mona", "email": "mona@github.example", "date": moment},
            },
            "author": {"login": "mona"},
            "html_url": f"https://github.example/{name}/commit",
            "parents": [{"sha": each} for each in (parents or above)],
        }
        row["sha"] = git_name("commit", json.dumps(row).encode())
        repository.commits.insert(0, row)
        return str(row["sha"])

    def respond(self, request: Request) -> RawResponse:
        self.asked.append(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        if self.is_locked or (
            self.token and headers.get("authorization") != f"Bearer {self.token}"
        ):
            return self._json({"message": "Bad credentials"}, 401)
        url = urlsplit(request.url)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        found = self._route(url.path.strip("/").split("/"), query, headers)
        tag = f'W/"{hashlib.sha256(found.body).hexdigest()}"'
        if found.status == 200 and headers.get("if-none-match") == tag:
            return answer("", status=304, headers={"etag": tag})
        self.counted.append(request.url)
        limits = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4999", "etag": tag}
        return RawResponse(found.status, {**limits, **found.headers}, found.body)

    def _route(
        self, path: list[str], query: dict[str, str], headers: dict[str, str]
    ) -> RawResponse:
        if path[0] in ("orgs", "users") and path[2:] == ["repos"]:
            return self._owned(path[0], path[1], query)
        if path[0] == "repositories":
            repository = next(
                (each for each in self.repositories.values() if str(each.id) == path[1]), None
            )
            rest = path[2:]
        else:
            name, rest = "/".join(path[1:3]), path[3:]
            if name in self.renamed:
                there = self.repositories[self.renamed[name]]
                tail = "/".join([str(there.id), *rest])
                asked = "&".join(f"{key}={value}" for key, value in query.items())
                location = f"{self.api}/repositories/{tail}" + (f"?{asked}" if asked else "")
                return answer("", status=301, headers={"location": location})
            repository = self.repositories.get(name)
        if repository is None:
            return self._json({"message": "Not Found"}, 404)
        status = repository.refusals.get("/".join(rest))
        if status is not None:
            return self._json({"message": "refused"}, status)
        return self._of(repository, rest, query, headers)

    def _of(
        self, of: Repository, rest: list[str], query: dict[str, str], headers: dict[str, str]
    ) -> RawResponse:
        where = f"{self.api}/repositories/{of.id}/{'/'.join(rest)}"
        match rest:
            case []:
                return self._json(self._about(of))
            case ["issues"]:
                return self._updated(where, of.issues, query)
            case ["issues", "comments"]:
                return self._updated(where, of.comments, query)
            case ["pulls", "comments"]:
                return self._updated(where, of.review_comments, query)
            case ["pulls", number, "reviews"]:
                if int(number) not in of.issues:
                    return self._json({"message": "Not Found"}, 404)
                return self._paged(where, of.reviews.get(int(number), []), query)
            case ["releases"]:
                return self._paged(where, of.releases, query)
            case ["commits"]:
                return self._log(where, of, query)
            case ["compare", between]:
                return self._compared(where, of, between, query)
            case ["git", "trees", name]:
                return self._tree(of, name, query)
            case ["git", "blobs", name]:
                return self._blob(of, name, headers)
        return self._json({"message": "Not Found"}, 404)

    def _about(self, of: Repository) -> Row:
        return {
            "id": of.id,
            "full_name": of.name,
            "html_url": f"https://github.example/{of.name}",
            "description": "A mill.",
            "default_branch": "main",
            "topics": ["mill"],
            "license": {"key": "mit", "spdx_id": "MIT"},
            "stargazers_count": len(self.asked),
            "archived": False,
            "fork": False,
            "private": False,
            **of.about,
        }

    def _owned(self, kind: str, owner: str, query: dict[str, str]) -> RawResponse:
        rows = [
            self._about(each)
            for name, each in sorted(self.repositories.items())
            if name.partition("/")[0] == owner
        ]
        if kind == "orgs" or not rows:
            return self._json({"message": "Not Found"}, 404)
        return self._paged(f"{self.api}/users/{owner}/repos", rows, query)

    def _updated(self, where: str, rows: dict[int, Row], query: dict[str, str]) -> RawResponse:
        """By the last update; `since` is the first moment that counts."""
        assert (query["sort"], query["direction"]) == ("updated", "asc")
        chosen = [row for row in rows.values() if row["updated_at"] >= query.get("since", "")]
        if where.endswith("/issues") and query.get("state") != "all":
            chosen = [row for row in chosen if row["state"] == "open"]
        return self._paged(where, sorted(chosen, key=lambda row: str(row["updated_at"])), query)

    def _log(self, where: str, of: Repository, query: dict[str, str]) -> RawResponse:
        if not of.commits:
            return self._json({"message": "Git Repository is empty."}, 409)
        names = [row["sha"] for row in of.commits]
        start = query.get("sha", "main")
        if start != "main" and start not in names:
            return self._json({"message": "Not Found"}, 404)
        at = 0 if start == "main" else names.index(start)
        return self._paged(where, of.commits[at:], query)

    def _compared(
        self, where: str, of: Repository, between: str, query: dict[str, str]
    ) -> RawResponse:
        """What the second has and the first has not, by parents."""
        before, _, head = between.partition("...")
        known = {row["sha"]: row for row in of.commits}
        if before not in known or head not in known:
            return self._json({"message": "Not Found"}, 404)
        old, new = _reach(known, before), _reach(known, head)
        rows = [row for row in reversed(of.commits) if row["sha"] in new - old]
        return self._paged(where, rows, query, shape=lambda page: {"commits": page})

    def _tree(self, of: Repository, name: str, query: dict[str, str]) -> RawResponse:
        if name != "HEAD" and len(name) != 40:
            return self._json({"message": "Not Found"}, 404)
        prefix = "" if name == "HEAD" else bytes.fromhex(name).decode().strip("\0")
        below = {
            path.removeprefix(prefix): body
            for path, body in of.files.items()
            if path.startswith(prefix)
        }
        if not of.files and not of.entries:
            return self._json({"message": "Git Repository is empty."}, 409)
        rows = [] if prefix else list(of.entries)
        for path, body in below.items():
            head, _, rest = path.partition("/")
            if rest and "recursive" not in query:
                sha = (prefix + head + "/").encode().ljust(20, b"\0").hex()
                row = {"path": head, "mode": "040000", "type": "tree", "sha": sha}
            else:
                row = {
                    "path": path,
                    "mode": "100644",
                    "type": "blob",
                    "sha": git_name("blob", body),
                }
                row["size"] = len(body)  # type: ignore[assignment]
            if row not in rows:
                rows.append(row)
        is_cut = len(rows) > self.most_entries
        return self._json({"sha": name, "tree": rows[: self.most_entries], "truncated": is_cut})

    def _blob(self, of: Repository, name: str, headers: dict[str, str]) -> RawResponse:
        assert headers["accept"] == "application/vnd.github.raw+json"
        for body in of.files.values():
            if git_name("blob", body) == name:
                return answer(body, headers={"content-type": "application/vnd.github.raw+json"})
        return self._json({"message": "Not Found"}, 404)

    def _paged(
        self, where: str, rows: list[Row], query: dict[str, str], shape: Any = lambda page: page
    ) -> RawResponse:
        each, number = int(query.get("per_page", 30)), int(query.get("page", 1))
        page = rows[(number - 1) * each : number * each]
        rest = "&".join(f"{name}={value}" for name, value in query.items() if name != "page")
        links = []
        if number * each < len(rows):
            links.append(f'<{where}?{rest}&page={number + 1}>; rel="next"')
            links.append(f'<{where}?{rest}&page={-(-len(rows) // each)}>; rel="last"')
        found = self._json(shape(page))
        about = {**found.headers, **({"link": ", ".join(links)} if links else {})}
        return RawResponse(found.status, about, found.body)

    def _json(self, value: Any, status: int = 200) -> RawResponse:
        body = json.dumps(value).encode("utf-8", "surrogatepass")
        return answer(
            body, status=status, headers={"content-type": "application/json; charset=utf-8"}
        )


def _reach(known: dict[str, Row], name: str) -> set[str]:
    found, waiting = set(), [name]
    while waiting:
        each = waiting.pop()
        if each in known and each not in found:
            found.add(each)
            waiting += [parent["sha"] for parent in known[each]["parents"]]
    return found


@contextmanager
def on_loopback(respond: Callable[[Request], RawResponse]) -> Iterator[str]:
    """The same over real sockets: its address."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []

    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        asked = Request(request.method, str(request.url), dict(request.headers), body)
        found = await loop.run_in_executor(None, respond, asked)
        kept = {name: value for name, value in found.headers.items() if name != "content-length"}
        return web.Response(body=found.body, status=found.status, headers=kept)

    async def serve() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ports.append(runner.addresses[0][1])
        started.set()
        try:
            await ended.wait()
        finally:
            await runner.cleanup()

    ended = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert started.wait(20)
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()
