"""Releases: what this environment runs, how it came here, what is in a release, and how two differ."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import ROWS, Visit

# More differences than this are cut: the command line has all of them.
MOST_DIFFERENCES = 500


def read(visit: Visit) -> dict[str, Any]:
    releases = visit.project.releases
    page = releases.history(cursor=visit.text("cursor"), limit=ROWS)
    return {
        "running": releases.running(),
        "policy": releases.policy(),
        "history": page.items,
        "next": visit.following(page.next),
    }


def read_release(visit: Visit) -> dict[str, Any]:
    releases = visit.project.releases
    return {
        "release": releases.get(visit.path["release"]),
        "running": releases.running().release,
        "needed": releases.policy().approvals_needed,
    }


def read_diff(visit: Visit) -> dict[str, Any]:
    """What this release changes, beside the one it is compared with: by default what runs here."""
    after = visit.path["release"]
    found = visit.project.releases.diff(visit.text("before"), after)
    return {
        "diff": found,
        "differences": found.differences[:MOST_DIFFERENCES],
        "is_cut": len(found.differences) > MOST_DIFFERENCES,
    }
