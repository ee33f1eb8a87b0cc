"""What an object store's refusal means, in words an operator can act on.

Nothing of what obstore or the server said is repeated but a status and an error code: a refused
signature comes back with the key's id and all that was signed.
"""

from __future__ import annotations

import re

from obstore.exceptions import NotSupportedError, PermissionDeniedError, UnauthenticatedError

from penstock.errors import StoreError
from penstock.snapshots.store import SnapshotsAway, SnapshotsRefused

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
_MEND = {
    "denied": "check the credentials in the environment; they must allow to list, read, write and delete",
    "bucket": "make the bucket, or name another in penstock.yaml (snapshots)",
    "credentials": (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://, GOOGLE_APPLICATION_CREDENTIALS for "
        "gs://, AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY for az://"
    ),
    "region": "set AWS_REGION to the region of the bucket",
    "create": "it must know If-None-Match, so that no object is ever overwritten",
    "configuration": "check the environment variables of the object store",
    "wait": "work resumes automatically when it is back",
}


def refusal(doing: str, error: Exception) -> StoreError:
    """The error to raise for one that obstore raised."""
    text = str(error)
    status = _found(_STATUS, text)
    detail = " ".join(word for word in (status, _found(_CODE, text)) if word)
    kind, what = _meaning(error, text, status)
    message = f"{doing}: {what} ({detail})" if detail else f"{doing}: {what}"
    return (SnapshotsAway if kind == "wait" else SnapshotsRefused)(message, _MEND[kind])


def is_without_bucket(error: Exception) -> bool:
    return any(sign in str(error) for sign in _WITHOUT_BUCKET)


def is_beyond_end(error: Exception) -> bool:
    """A range was asked for that begins where the object has ended."""
    return _found(_STATUS, str(error)) == "416"


def _meaning(error: Exception, text: str, status: str) -> tuple[str, str]:
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
