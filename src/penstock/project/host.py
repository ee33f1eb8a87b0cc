"""The name of this host: workers register under it, and whoever looks for its own workers compares it."""

from __future__ import annotations

import os


def host_name() -> str:
    return os.uname().nodename
