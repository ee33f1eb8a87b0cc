"""What an object store's refusal means, in words an operator can act on.

Nothing of what obstore or the server said is repeated but a status and an error code: a refused
signature comes back with the key's id and all that was signed.
"""

from __future__ import annotations

from penstock.errors import StoreError
from penstock.http.buckets import is_without_bucket, meaning, status_of
from penstock.snapshots.store import SnapshotsAway, SnapshotsRefused

__all__ = ["is_beyond_end", "is_without_bucket", "refusal"]

_MEND = {
    "denied": "check the credentials in the environment; they must allow to list, read, write and delete",
    "bucket": "make the bucket, or name another; that of snapshots is in penstock.yaml (snapshots)",
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
    kind, what = meaning(error)
    message = f"{doing}: {what}"
    return (SnapshotsAway if kind == "wait" else SnapshotsRefused)(message, _MEND[kind])


def is_beyond_end(error: Exception) -> bool:
    """A range was asked for that begins where the object has ended."""
    return status_of(error) == "416"
