"""What the tests of connectors share."""

from __future__ import annotations

from tests.snapshots.conftest import s3_port, wire

__all__ = ["s3_port", "wire"]
