"""A git server: git's own http-backend, asked as a web server would, on a repository that tests change."""

from __future__ import annotations

import os
import shutil
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from dulwich.repo import Repo

from penstock.connectors.files.paths import key_of
from penstock.connectors.github.demo import commit_files
from penstock.testing import RawResponse, Request, answer
from penstock.testing.connectors import Place

SITE = "https://git.example"


class GitServer:
    """Serves `repo.git` of a folder over smart HTTP."""

    def __init__(self, folder: Path, *, can_filter: bool = True) -> None:
        if shutil.which("git") is None:
            pytest.skip("git is not installed")
        self.root = folder
        self.path = folder / "repo.git"
        self.path.mkdir(parents=True)
        Repo.init_bare(str(self.path)).close()
        settings = f"[uploadpack]\n\tallowFilter = {str(can_filter).lower()}\n[http]\n\treceivepack = false\n"
        with (self.path / "config").open("a") as config:
            config.write(settings)
        self.files: dict[str, bytes] = {}
        # Entries that are no files: path, name of the object, mode.
        self.odd: list[tuple[bytes, bytes, int]] = []
        self.is_changed = True
        # Bytes of all answers.
        self.sent = 0

    def forget(self) -> None:
        """Everything that was committed: as after a history was rewritten and cleaned up."""
        shutil.rmtree(self.path / "objects")
        (self.path / "objects").mkdir()
        self.is_changed = True

    def commit(self) -> None:
        """What the files are now, as one more commit on main."""
        self.is_changed = False
        repository = Repo(str(self.path))
        try:
            commit_files(repository, self.files, self.odd)
        finally:
            repository.close()

    def respond(self, request: Request) -> RawResponse:
        if self.is_changed and self.files:
            self.commit()
        url, headers = urlsplit(request.url), {n.lower(): v for n, v in request.headers.items()}
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self.root),
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body or b"")),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        made = subprocess.run(
            ["git", "http-backend"], input=request.body or b"", env=environ, capture_output=True
        )
        head, _, body = made.stdout.partition(b"\r\n\r\n")
        about = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.sent += len(body)
        status = int(about.pop("Status", "200 OK").partition(" ")[0])
        return answer(body, status=status, headers={n.lower(): v for n, v in about.items()})


class GitPlace(Place):
    """Files of a repository on a git server."""

    connector = "github"
    about = {}  # noqa: RUF012
    can_filter = True
    extra: dict[str, Any] = {}  # noqa: RUF012
    is_locked = False

    def __init__(self, folder: Path, *, can_filter: bool | None = None) -> None:
        super().__init__(folder)
        can_filter = self.can_filter if can_filter is None else can_filter
        self.server = GitServer(folder / "server", can_filter=can_filter)

    def keys(self) -> dict[str, Any]:
        return {"url": f"{SITE}/repo.git", "token": "${SECRET}", **self.extra}

    def put(self, name: str, text: str) -> bool:
        if any(part in ("", "..") for part in name.split("/")):
            return False  # a tree can't hold it
        self.texts[name] = text
        self.server.files[name] = text.encode("utf-8", "surrogatepass")
        self.server.is_changed = True
        return True

    def remove(self, name: str) -> None:
        del self.texts[name]
        del self.server.files[name]
        self.server.is_changed = True

    def key(self, name: str) -> str:
        return key_of(name)

    def lock(self) -> bool:
        self.is_locked = True
        return True

    def page(self, request: Request) -> RawResponse:
        pair = b64encode(f"x-access-token:{self.secret}".encode()).decode()
        if self.is_locked or request.headers.get("Authorization") != f"Basic {pair}":
            return answer("", status=401, headers={"WWW-Authenticate": "Basic"})
        return self.server.respond(request)
