"""Buckets of object stores: S3 and what speaks like it, Google's, Azure's.

Their client is obstore. It signs; credentials, region and endpoint come from the environment, as it reads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

from obstore import sign
from obstore.exceptions import (
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, S3Store

from penstock.version import __version__

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

Bucket: TypeAlias = S3Store | GCSStore | AzureStore
Refusal = Literal["denied", "bucket", "credentials", "region", "create", "configuration", "wait"]

REQUEST_S = 30.0
# A hiccup passes unnoticed.
RETRY_S = 10.0
ERRORS = (BaseError, OSError, ValueError)
_SIGNED_FOR = timedelta(hours=1)
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_STATUS = re.compile(r"status code: ([1-5][0-9]{2})\b")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_WITHOUT_BUCKET = ("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist")
# Where credentials are asked for when the environment has none.
_FOR_CREDENTIALS = (
    "/latest/api/token",
    "/security-credentials/",
    "/computeMetadata/",
    "/metadata/identity/",
    "AssumeRole",
)


def connect(url: str, retry_s: float = RETRY_S) -> Bucket:
    """A client of the bucket, or of what is under a prefix of it. Nothing is asked for yet."""
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=5),
        "timeout": timedelta(seconds=REQUEST_S),
        "user_agent": f"penstock/{__version__}",
    }
    retry: RetryConfig = {
        "retry_timeout": timedelta(seconds=retry_s),
        "backoff": {"max_backoff": timedelta(seconds=2)},
    }
    if scheme == "s3":
        client["allow_http"] = _is_http()
        return S3Store(bucket, prefix=prefix or None, client_options=client, retry_config=retry)
    if scheme == "gs":
        return GCSStore(bucket, prefix=prefix or None, client_options=client, retry_config=retry)
    return AzureStore(bucket, prefix=prefix or None, client_options=client, retry_config=retry)


def _is_http() -> bool:
    """Who writes http:// into the endpoint means it; obstore would want to be told twice."""
    given = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
    return given.lower().startswith("http://")


def signed(bucket: Bucket, name: str) -> str:
    """The address of an object, with the right to read it for an hour."""
    return sign(bucket, "GET", name, _SIGNED_FOR)


def names_in(bucket: Bucket, prefix: str) -> Iterator[str]:
    """The names of the objects under a prefix, a request for each thousand."""
    for chunk in bucket.list(prefix or None, chunk_size=1000):
        for found in chunk:
            yield found["path"]


def is_without_bucket(error: Exception) -> bool:
    return any(sign in str(error) for sign in _WITHOUT_BUCKET)


def meaning(error: Exception) -> tuple[Refusal, str]:
    """What an error of obstore means, in words; nothing of what the server said but status and code."""
    text = str(error)
    status = _found(_STATUS, text)
    kind, what = _meaning(error, text, status)
    detail = " ".join(word for word in (status, _found(_CODE, text)) if word)
    return kind, f"{what} ({detail})" if detail else what


def status_of(error: Exception) -> str:
    return _found(_STATUS, str(error))


def _meaning(error: Exception, text: str, status: str) -> tuple[Refusal, str]:
    if any(place in text for place in _FOR_CREDENTIALS):
        return "credentials", "no credentials were found"
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in ("401", "403"):
        return "denied", "access denied"
    if is_without_bucket(error) or isinstance(error, FileNotFoundError):
        return "bucket", "there is no such bucket"
    if "redirect" in text:
        return "region", "the bucket is in another region"
    if isinstance(error, NotSupportedError) or status == "501":
        return "create", "it can't put an object only where there is none"
    if status in ("429", "503"):
        return "wait", "the object store asks us to slow down"
    if status:
        return "wait", "the object store failed"
    if "TimedOut" in text or "Timeout" in text:
        return "wait", "the object store does not answer"
    if "HTTP error" in text:
        return "wait", "the object store can't be reached"
    return "configuration", "it is not configured for use"


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
