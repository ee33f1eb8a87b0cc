"""What is taken of the API's answers, and the documents that are made of it."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.connectors.contract import Document
from penstock.connectors.formats.kinds import parse
from penstock.connectors.formats.parsed import MOST_TEXT, clean, one_line

# Longer than any text that GitHub takes itself; what git brings may be longer.
LONGEST_TEXT = 262_144


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thing that is listed. Fields that documents do not have are not taken."""


class User(Row, frozen=True):
    login: str | None = None


class Named(Row, frozen=True):
    name: str | None = None


class Titled(Row, frozen=True):
    title: str | None = None


class License(Row, frozen=True):
    spdx_id: str | None = None


class Repository(Row, frozen=True):
    full_name: str
    html_url: str | None = None
    description: str | None = None
    homepage: str | None = None
    language: str | None = None
    topics: list[str] = []
    license: License | None = None
    default_branch: str | None = None
    archived: bool = False
    fork: bool = False
    private: bool = False
    created_at: str | None = None


class PullMark(Row, frozen=True):
    merged_at: str | None = None


class Issue(Row, frozen=True):
    number: int
    updated_at: str
    title: str | None = None
    body: str | None = None
    state: str | None = None
    state_reason: str | None = None
    html_url: str | None = None
    user: User | None = None
    labels: list[Named | str] = []
    assignees: list[User] = []
    milestone: Titled | None = None
    created_at: str | None = None
    closed_at: str | None = None
    draft: bool = False
    pull_request: PullMark | None = None

    @property
    def number_or_id(self) -> int:
        return self.number


class Comment(Row, frozen=True):
    """Of an issue or a pull request; with `path`, of a line of its changes."""

    id: int
    updated_at: str
    body: str | None = None
    html_url: str | None = None
    issue_url: str | None = None
    pull_request_url: str | None = None
    user: User | None = None
    created_at: str | None = None
    path: str | None = None
    line: int | None = None
    commit_id: str | None = None
    in_reply_to_id: int | None = None

    @property
    def number_or_id(self) -> int:
        return self.id


class Review(Row, frozen=True):
    """Of a pull request: what somebody thinks of it. `number` is that of the pull request."""

    id: int
    number: int = 0
    state: str | None = None
    body: str | None = None
    html_url: str | None = None
    user: User | None = None
    commit_id: str | None = None
    submitted_at: str | None = None


class Signature(Row, frozen=True):
    name: str | None = None
    date: str | None = None


class CommitText(Row, frozen=True):
    message: str = ""
    author: Signature | None = None
    committer: Signature | None = None


class Parent(Row, frozen=True):
    sha: str


class Commit(Row, frozen=True):
    sha: str
    commit: CommitText
    html_url: str | None = None
    author: User | None = None
    parents: list[Parent] = []


class Compared(Row, frozen=True):
    commits: list[Commit] = []


class Asset(Row, frozen=True):
    name: str | None = None
    browser_download_url: str | None = None
    size: int | None = None


class Release(Row, frozen=True):
    id: int
    tag_name: str | None = None
    name: str | None = None
    body: str | None = None
    html_url: str | None = None
    draft: bool = False
    prerelease: bool = False
    created_at: str | None = None
    published_at: str | None = None
    author: User | None = None
    assets: list[Asset] = []


KINDS: dict[str, type[Row]] = {
    "repository": Repository,
    "issue": Issue,
    "pull": Issue,
    "comment": Comment,
    "review-comment": Comment,
    "review": Review,
    "commit": Commit,
    "release": Release,
}


def document_of(kind: str, key: str, body: bytes, fingerprint: str) -> Document:
    """The document of a row, as it was stored."""
    title, text, meta = _SHAPES[kind](msgspec.json.decode(body, type=KINDS[kind]))
    text = text or ""
    if len(text) > LONGEST_TEXT:
        meta["cut"] = True
    text = clean(text[: min(LONGEST_TEXT, MOST_TEXT)])
    return Document(
        key=key,
        kind=kind,
        title=one_line(title or ""),
        text=text,
        meta={name: value for name, value in meta.items() if value not in (None, "", [], False)},
        links=parse("markdown", text.encode()).links,
        fingerprint=fingerprint,
    )


Shape = tuple[str | None, str | None, dict[str, Any]]


def _repository(row: Any) -> Shape:
    meta = {
        "url": row.html_url,
        "homepage": row.homepage,
        "language": row.language,
        "topics": row.topics,
        "license": row.license and row.license.spdx_id,
        "branch": row.default_branch,
        "archived": row.archived,
        "fork": row.fork,
        "private": row.private,
        "created": row.created_at,
    }
    return row.full_name, row.description, meta


def _issue(row: Any) -> Shape:
    meta = {
        "url": row.html_url,
        "number": row.number,
        "state": row.state,
        "state_reason": row.state_reason,
        "author": _login(row.user),
        "labels": [each if isinstance(each, str) else each.name for each in row.labels],
        "assignees": [_login(each) for each in row.assignees],
        "milestone": row.milestone and row.milestone.title,
        "created": row.created_at,
        "updated": row.updated_at,
        "closed": row.closed_at,
        "draft": row.draft,
        "merged": row.pull_request and row.pull_request.merged_at,
    }
    return row.title, row.body, meta


def _comment(row: Any) -> Shape:
    about = row.issue_url or row.pull_request_url or ""
    number = about.rpartition("/")[2]
    meta = {
        "url": row.html_url,
        "number": int(number) if number.isascii() and number.isdecimal() else None,
        "author": _login(row.user),
        "created": row.created_at,
        "updated": row.updated_at,
        "path": row.path,
        "line": row.line,
        "commit": row.commit_id,
        "in_reply_to": row.in_reply_to_id,
    }
    return "", row.body, meta


def _review(row: Any) -> Shape:
    meta = {
        "url": row.html_url,
        "number": row.number,
        "state": (row.state or "").lower(),
        "author": _login(row.user),
        "commit": row.commit_id,
        "submitted": row.submitted_at,
    }
    return "", row.body, meta


def _commit(row: Any) -> Shape:
    author, committer = row.commit.author, row.commit.committer
    meta = {
        "url": row.html_url,
        "sha": row.sha,
        "author": _login(row.author),
        "author_name": author and author.name,
        "authored": author and author.date,
        "committed": committer and committer.date,
        "parents": [each.sha for each in row.parents],
    }
    return row.commit.message.partition("\n")[0], row.commit.message, meta


def _release(row: Any) -> Shape:
    assets = [
        {"name": each.name, "url": each.browser_download_url, "bytes": each.size}
        for each in row.assets[:1_000]
    ]
    meta = {
        "url": row.html_url,
        "tag": row.tag_name,
        "author": _login(row.author),
        "draft": row.draft,
        "prerelease": row.prerelease,
        "created": row.created_at,
        "published": row.published_at,
        "assets": assets,
    }
    return row.name or row.tag_name, row.body, meta


def _login(user: User | None) -> str | None:
    return user.login if user is not None else None


_SHAPES = {
    "repository": _repository,
    "issue": _issue,
    "pull": _issue,
    "comment": _comment,
    "review-comment": _comment,
    "review": _review,
    "commit": _commit,
    "release": _release,
}
