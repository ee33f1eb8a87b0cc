"""Whole files in a bucket of an object store: what an export puts there."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import ConfigError, UsageError
from penstock.settings.snapshot_address import parse_snapshots


def object_url(text: str) -> str | None:
    """The URL of an object in a bucket, checked; None for what is a path."""
    found = parse_snapshots(text, Path())
    return found if isinstance(found, str) else None


class Objects:
    """The objects beside one URL. An object is there as a whole, or as it was before."""

    def __init__(self, url: str) -> None:
        try:
            from penstock.snapshots.bucket import connect
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "obstore":
                raise
            raise UsageError(
                f"{url.partition(':')[0]}:// needs obstore, which is not installed",
                "pip install 'penstock[blob]'",
                code="extra_missing",
            ) from None
        self._place, _, self.name = url.rpartition("/")
        if "://" not in self._place or self._place.endswith(":/"):
            raise ConfigError(f"{url} names a bucket, and no object in it", "s3://BUCKET/NAME")
        self._bucket = connect(self._place)

    def holds(self, name: str) -> bool:
        from penstock.snapshots.refusals import is_without_bucket, refusal

        try:
            self._bucket.head(name)
        except FileNotFoundError as error:
            if is_without_bucket(error):
                raise refusal(f"can't use {self._place}", error) from None
            return False
        except Exception as error:
            raise refusal(f"can't use {self._place}", error) from None
        return True

    def get(self, name: str, most: int) -> bytes | None:
        """A whole object of at most so many bytes; None if there is none, or it is larger."""
        from penstock.snapshots.refusals import is_without_bucket, refusal

        try:
            found = self._bucket.get(name)
            return bytes(found.bytes()) if found.meta["size"] <= most else None
        except FileNotFoundError as error:
            if is_without_bucket(error):
                raise refusal(f"can't use {self._place}", error) from None
            return None
        except Exception as error:
            raise refusal(f"can't read {name} of {self._place}", error) from None

    def put(self, name: str, file: Path) -> None:
        """Put a file of any size, in pieces where it is large: nobody sees them before the last one."""
        from penstock.snapshots.refusals import refusal

        try:
            self._bucket.put(name, file)
        except Exception as error:
            raise refusal(f"can't write {name} to {self._place}", error) from None
