"""The keys of the connector `github`."""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlsplit

from penstock.connectors.files.connector import read_patterns
from penstock.errors import nearest
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import SECRET, Reads, Usual, about
from penstock.settings.document import Entry
from penstock.settings.kinds import Size, read_names, text_schema, texts_schema
from penstock.settings.section import Section, read_text

API = "https://api.github.com"
# Files and reviews cost a request for each file and for each pull request.
USUAL_PARTS = ("issues", "pulls", "comments", "releases", "commits")
PARTS = (*USUAL_PARTS, "reviews", "files")
HTTP = ("http://", "https://")
_OWNER = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
_NAME = r"[A-Za-z0-9._-]{1,100}"
_REPOSITORY = re.compile(rf"{_OWNER}/(?!\.{{1,2}}$){_NAME}")
_OWNER_ALONE = re.compile(_OWNER)
_PATTERN = re.compile(r"!?[A-Za-z0-9._*?\[\]-]{1,100}")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@#-]{0,199}")


def _read_repository(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    if not _REPOSITORY.fullmatch(text) and not _PATTERN.fullmatch(text):
        raise entry.error(path, "needs repositories such as octocat/hello-world")
    return text


def _read_repositories(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "repositories", _read_repository)
    return found


def _read_owner(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    if not _OWNER_ALONE.fullmatch(text):
        raise entry.error(path, "must be the name of a user or an organisation")
    return text


def _read_part(entry: Entry, path: str) -> str:
    word = read_text(entry, path)
    if word not in PARTS:
        raise entry.error(path, f"can't be {word!r}, {nearest(word, PARTS)}")
    return word


def _read_parts(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "things to read", _read_part)
    return found


def _read_api(entry: Entry, path: str) -> str:
    text = read_text(entry, path).rstrip("/")
    url = urlsplit(text)
    if not is_http(text) or not url.hostname or url.username or url.query:
        raise entry.error(path, f"must be an address such as {API}")
    return text


def _read_url(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    if "://" in text and not is_http(text):
        raise entry.error(path, "must be an http or https address, or a path; ssh is not read")
    if "@" in (urlsplit(text).netloc if "://" in text else ""):
        raise entry.error(path, "must not hold a password; use token: ${TOKEN}")
    return text


def _read_since(entry: Entry, path: str) -> str:
    value = str(entry.value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise entry.error(path, "must be a date such as 2026-01-31") from None
    return as_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _read_branch(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    if not _BRANCH.fullmatch(text) or ".." in text:
        raise entry.error(path, "must be the name of a branch")
    return text


def is_http(address: str) -> bool:
    return address.lower().startswith(HTTP)


def as_time(moment: datetime) -> str:
    """As GitHub writes times."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


class GitHubKeys(ConnectorKeys, frozen=True, kw_only=True):
    """Repositories on GitHub, or one git repository anywhere."""

    repositories: Annotated[
        tuple[str, ...],
        Reads(_read_repositories, texts_schema),
        about(
            "repositories as `owner/name`; with `owner`, patterns of their names instead: "
            '`["web-*", "!web-old"]`'
        ),
        Usual("with `owner`, all of them"),
    ] = ()
    owner: Annotated[
        str | None,
        Reads(_read_owner, text_schema),
        about("all repositories of this user or organisation that the token can see"),
        Usual("none"),
    ] = None
    archived: Annotated[bool, about("with `owner`, also archived repositories")] = False
    forks: Annotated[bool, about("with `owner`, also forks")] = False
    url: Annotated[
        str | None,
        Reads(_read_url, text_schema),
        about(
            "a git repository anywhere, of which the files are read: an http or https address, or a path "
            "relative to penstock.yaml; needs the extra `git`"
        ),
        Usual("none"),
    ] = None
    read: Annotated[
        tuple[str, ...],
        Reads(_read_parts, texts_schema),
        about(f"what is read: {', '.join(f'`{each}`' for each in PARTS)}"),
    ] = USUAL_PARTS
    token: Annotated[
        str | None,
        SECRET,
        about(
            "a token, as `${GITHUB_TOKEN}`; it is sent to the origin of `api` or `url` and to no other"
        ),
        Usual("none: 60 requests an hour"),
    ] = None
    api: Annotated[
        str,
        Reads(_read_api, text_schema),
        about("the API; of GitHub Enterprise: `https://HOST/api/v3`"),
    ] = API
    since: Annotated[
        str | None,
        Reads(_read_since, lambda _: {"type": "string"}),
        about("issues, pull requests, comments and commits older than this are not read"),
        Usual("all"),
    ] = None
    branch: Annotated[
        str | None,
        Reads(_read_branch, text_schema),
        about("the branch of commits and files"),
        Usual("the default branch"),
    ] = None
    include: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about('files to read, such as `["*.md", "docs/**"]`, in the syntax of ignore files'),
        Usual("all"),
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        Reads(read_patterns, texts_schema),
        about("files and folders that are left out, in the same syntax"),
        Usual("none"),
    ] = ()
    max_bytes: Annotated[Size, about("larger files are left out")] = 1_000_000

    @classmethod
    def refuse(cls, at: Section) -> None:
        named = [name for name in ("repositories", "owner", "url") if at.has(name)]
        if not named:
            raise at.error("repositories", "is missing; name repositories, an owner or a url")
        if "url" in named and len(named) > 1:
            raise at.error("url", f"can't stand beside {named[0]}")

    def made(self, at: Section) -> GitHubKeys:
        for name in self.repositories:
            if self.owner is None and "/" not in name:
                raise at.error("repositories", f"needs owner/name, not {name}; or add owner: NAME")
            if self.owner is not None and "/" in name:
                raise at.error("repositories", f"with owner, needs a name alone, not {name}")
        return self

    def headers_for(self) -> dict[str, dict[str, str]]:
        """The token, for the one origin that it is meant for, and what the API wants to be told."""
        if self.url is not None:
            pair = b64encode(f"x-access-token:{self.token}".encode()).decode()
            about_git: dict[str, str] = {"Authorization": f"Basic {pair}"} if self.token else {}
            return {_origin(self.url): about_git} if is_http(self.url) else {}
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return {_origin(self.api): headers}


def _origin(address: str) -> str:
    url = urlsplit(address)
    return f"{url.scheme.lower()}://{url.netloc.lower()}"
