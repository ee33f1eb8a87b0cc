"""Where snapshots go: a folder, or a bucket of an object store."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.errors import ConfigError

BUCKETS = ("s3", "gs", "az")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")
_PART = re.compile(r"[A-Za-z0-9._=+-]+")


def parse_snapshots(text: str, root: Path) -> Path | str:
    """A folder as a path, a bucket as a URL without a slash at its end.

    No error repeats the text: it may hold credentials, although it should not.
    """
    found = _SCHEME.match(text)
    if found is None:
        return root / text
    scheme, rest = found[1].lower(), text[found.end() :]
    if scheme == "file" and rest.startswith("/"):
        return _folder(rest)
    if scheme in BUCKETS and rest.startswith("//"):
        return f"{scheme}://{_bucket(rest[2:])}"
    raise ConfigError(
        "must be a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
    )


def _folder(rest: str) -> Path:
    url = urlsplit(f"file:{rest}")
    folder = Path(unquote(url.path))
    if url.netloc not in ("", "localhost") or url.query or url.fragment or "\0" in str(folder):
        raise ConfigError("must be file:///FOLDER, an absolute path on this machine")
    return folder


def _bucket(rest: str) -> str:
    if "@" in rest or "?" in rest:
        raise ConfigError("must hold no credentials and no options: they come from the environment")
    bucket, *prefix = rest.rstrip("/").split("/")
    if not _BUCKET.fullmatch(bucket):
        raise ConfigError("must name a bucket of letters, digits, '.', '_' and '-'")
    for part in prefix:
        if not _PART.fullmatch(part) or part in (".", ".."):
            raise ConfigError("may have a prefix of letters, digits and '._=+-' between slashes")
    return "/".join([bucket, *prefix])
