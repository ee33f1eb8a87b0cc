"""Places of files that are not on this machine: an address, or an object in a bucket.

Both are read by HTTP, within the limits of the source. An object is asked for by an address that is signed
for an hour, and known by its name in the bucket: no signature is stored anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from penstock.http.failures import FetchError
from penstock.jobs.failures import BadData, Permanent
from penstock.pipeline.context import Captured
from penstock.pipeline.fetch_options import FetchOptions
from penstock.settings.pattern import WILD, pattern_of

if TYPE_CHECKING:
    from penstock.http.failures import Kind
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

HTTP = ("http://", "https://")
BUCKETS = ("s3://", "gs://", "az://")
MOST_OBJECTS = 10_000
RANGE, PART_OF = "content-range", 206
_KEPT = (RANGE, "etag", "last-modified")
_KINDS: dict[str, Kind] = {"denied": "auth", "credentials": "auth", "wait": "transient"}


class RemotePlace(Protocol):
    """Where a file is, and how ranges of it are asked for."""

    async def fetch(self, ctx: Context, headers: Mapping[str, str]) -> Response:
        """A range, stored before it is handed over."""
        ...

    async def send(self, ctx: Context, headers: Mapping[str, str]) -> Response:
        """A range that is stored nowhere."""
        ...


def is_remote(path: str) -> bool:
    return path.lower().startswith((*HTTP, *BUCKETS))


def is_bucket(path: str) -> bool:
    return path.lower().startswith(BUCKETS)


class Address:
    """A file on a server."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def fetch(self, ctx: Context, headers: Mapping[str, str]) -> Response:
        return _ranged(await ctx.fetch(self._url, headers=headers, missing="fail"))

    async def send(self, ctx: Context, headers: Mapping[str, str]) -> Response:
        return _ranged(await ctx.send(self._url, FetchOptions(headers=headers, missing="fail")))


class BucketObject:
    """An object in a bucket, by its whole name: `s3://BUCKET/NAME`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bucket, self._path = split_bucket(name)

    async def fetch(self, ctx: Context, headers: Mapping[str, str]) -> Response:
        async def bring() -> Captured:
            found = await self.send(ctx, headers)
            kept = {name: found.headers[name] for name in _KEPT if name in found.headers}
            return Captured(found.body, kept)

        where = f"{self._name}#{headers['Range']}"
        return await ctx.capture(where, bring, is_page=False, counted=False)

    async def send(self, ctx: Context, headers: Mapping[str, str]) -> Response:
        url = await ctx.in_thread(self._signed)
        try:
            return _ranged(await ctx.send(url, FetchOptions(headers=headers, missing="fail")))
        except FetchError as error:
            # The address holds the right to read it.
            error.url = self._name
            error.args = (f"{error.message}: {self._name}",)
            raise

    def _signed(self) -> str:
        buckets = bucket_library(self._name)
        try:
            return str(buckets.signed(buckets.connect(self._bucket), self._path))
        except buckets.ERRORS as error:
            raise _refusal(self._bucket, error) from None


def _ranged(response: Response) -> Response:
    if response.status != PART_OF and RANGE not in response.headers:
        raise Permanent(
            "the server does not answer ranges of the file: download it, and name its path",
            cause="no ranges",
        )
    return response


def split_bucket(name: str) -> tuple[str, str]:
    """The bucket, and the name in it."""
    scheme, _, rest = name.partition("://")
    bucket, _, path = rest.partition("/")
    if not bucket or not path or "?" in bucket or "@" in bucket:
        raise Permanent(
            "an object in a bucket is s3://BUCKET/NAME, gs://BUCKET/NAME or az://CONTAINER/NAME; "
            "credentials come from the environment",
            cause="no object",
        )
    return f"{scheme.lower()}://{bucket}", path


async def objects_of(ctx: Context, path: str) -> list[str]:
    """The objects that a path in a bucket means; a pattern means those that are there."""
    bucket, name = split_bucket(path)
    if not any(sign in name for sign in WILD):
        return [f"{bucket}/{name}"]
    buckets = bucket_library(path)
    try:
        parts = urlsplit(await ctx.in_thread(lambda: buckets.signed(buckets.connect(bucket), name)))
    except buckets.ERRORS as error:
        raise _refusal(bucket, error) from None
    is_tls = parts.scheme == "https"
    door = ctx.door(parts.hostname or "", parts.port or (443 if is_tls else 80), tls=is_tls)
    # Its client opens connections of its own: the address is looked at first.
    (await door.connect()).close()
    return await door.ask(lambda: ctx.in_thread(lambda: _listed(bucket, name)))


def _listed(bucket: str, pattern: str) -> list[str]:
    buckets = bucket_library(bucket)
    wanted = pattern_of(pattern)
    root = "" if wanted.root == "." else f"{wanted.root}/"
    found = []
    try:
        for name in buckets.names_in(buckets.connect(bucket), root.rstrip("/")):
            if name.startswith(root) and wanted.holds(name.removeprefix(root)):
                found.append(f"{bucket}/{name}")
            if len(found) > MOST_OBJECTS:
                raise BadData(f"more than {MOST_OBJECTS:,} objects: narrow the pattern")
    except buckets.ERRORS as error:
        raise _refusal(bucket, error) from None
    return sorted(found)


def bucket_library(path: str) -> Any:
    try:
        from penstock.http import buckets
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        scheme = path.partition(":")[0]
        raise Permanent(
            f"reading {scheme}:// needs obstore: pip install 'penstock[blob]', then retry",
            cause="obstore is not installed",
        ) from None
    return buckets


def _refusal(bucket: str, error: Exception) -> FetchError:
    kind, what = bucket_library(bucket).meaning(error)
    return FetchError(f"{bucket}: {what}", kind=_KINDS.get(kind, "permanent"))
