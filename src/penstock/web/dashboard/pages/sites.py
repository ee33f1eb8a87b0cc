"""Sites: what agents have learned, and the proposals that a person decides."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import ROWS, Visit


def read(visit: Visit) -> dict[str, Any]:
    sites = visit.project.sites
    page = sites.list(cursor=visit.text("cursor"), limit=ROWS)
    return {
        "sites": page.items,
        "proposals": sites.proposals(limit=ROWS).items,
        "next": visit.following(page.next),
    }


def read_proposal(visit: Visit) -> dict[str, Any]:
    return {"proposal": visit.project.sites.proposal(visit.path["domain"], visit.path["proposal"])}
