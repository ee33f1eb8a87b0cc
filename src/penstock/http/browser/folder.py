"""A folder as a site: pages of it are drawn without any network, and see nothing outside of it."""

from __future__ import annotations

import mimetypes
import os
import stat
from pathlib import Path
from time import time
from urllib.parse import unquote, urlsplit

from penstock.http.failures import AddressRefused, FetchError
from penstock.http.response import Response

_TEXT = ("text/", "application/javascript", "application/json")


class FolderSite:
    """`page` is an address of the site; all of its addresses begin as that one does."""

    def __init__(self, folder: str, page: str) -> None:
        self._root = Path(os.path.realpath(folder))
        self._host = urlsplit(page).netloc

    def get(self, url: str, most: int) -> Response:
        """A file as a server would answer it. Links that lead out of the folder lead nowhere."""
        parts = urlsplit(url)
        if parts.netloc != self._host:
            raise AddressRefused("a page of a folder has no network", url)
        name = unquote(parts.path).lstrip("/") or "index.html"
        try:
            path = Path(os.path.realpath(self._root / name))
            body = self._read(path, most, url)
        except (OSError, ValueError):
            raise FetchError("there is no such file in the folder", url, 404, True) from None
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        charset = "; charset=utf-8" if kind.startswith(_TEXT) else ""
        return Response(url, url, 200, {"content-type": kind + charset}, body, time())

    def _read(self, path: Path, most: int, url: str) -> bytes:
        if not path.is_relative_to(self._root):
            raise FileNotFoundError
        with open(path, "rb", opener=_opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileNotFoundError
            body = file.read(most + 1)
        if len(body) > most:
            raise FetchError(f"the file is larger than {most} bytes", url, None, True, "data")
        return body


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
