"""A git server: git's own http-backend, asked as a web server would, on a repository that tests change."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dulwich.repo import Repo

from penstock.connectors.github.demo import commit_files
from penstock.testing import RawResponse, Request, answer

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
        status = int(about.pop("Status", "200 OK").partition(" ")[0])
        return answer(body, status=status, headers={n.lower(): v for n, v in about.items()})
