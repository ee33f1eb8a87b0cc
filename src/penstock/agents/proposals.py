"""Proposals: changes of a schema that a person decides, and what a decision changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from penstock.agents.schema import (
    Decision,
    Proposal,
    SiteSchema,
    contents_of,
    with_fields,
    written,
)

ESCALATED = "site.escalated"
PROPOSED = "site.proposed"
# Decided ones are kept as a history; people's decisions about images hold as long as they are there.
KEPT = 100


def propose(known: Sequence[Proposal], new: Sequence[Proposal]) -> list[Proposal]:
    """All proposals of a site with these. An open one about the same makes way."""
    ids, about = {each.id for each in new}, {(each.kind, each.about) for each in new}
    before = [
        each
        for each in known
        if each.id not in ids and not (each.status == "open" and (each.kind, each.about) in about)
    ]
    return [*before, *new][-KEPT:]


def made_about(schema: SiteSchema, proposal: Proposal) -> Proposal:
    """The proposal, bound to what the schema is now."""
    return replace(proposal, version=schema.version, contents=contents_of(schema))


def is_outdated(schema: SiteSchema, proposal: Proposal) -> bool:
    """Whether approval would undo what came since the proposal was made, or change what is gone.

    A question about images is about one selector, and holds as long as that is used. A proposal that no agent
    has made says nothing of the schema that it is about.
    """
    if proposal.kind == "images" and proposal.justification.get("selector"):
        return proposal.justification["selector"] not in schema.image_include_selectors
    return bool(proposal.contents) and proposal.contents != contents_of(schema)


def carried(proposals: Sequence[Proposal], schema: SiteSchema, at: str) -> list[Proposal]:
    """These proposals beside a new version of the schema: open ones that it makes pointless are closed."""
    why = f"version {schema.version} of the schema has made it pointless"
    return [
        replace(each, status="outdated", decided_at=at, reason=why)
        if each.status == "open" and is_outdated(schema, each)
        else each
        for each in proposals
    ]


def approved(schema: SiteSchema, proposal: Proposal, at: str) -> dict[str, Any]:
    """The fields of the schema that are set if a proposal is approved: a new version, to be validated."""
    change = dict(proposal.change)
    if proposal.kind == "images":
        change = _of_images(schema, change)
    return {
        **changed_by(schema, change, at),
        "cataloged_by": "ai" if proposal.kind == "model" else "manual",
        "learned_for": f"proposal {proposal.id} was approved",
    }


def changed_by(schema: SiteSchema, change: dict[str, Any], at: str) -> dict[str, Any]:
    """These fields as a new version of the schema, which nobody has validated yet.

    A candidate that is tried was learned beside the schema as it was: it is dropped.
    """
    return {
        **({} if schema.candidate is None else {"candidate": None}),
        **change,
        "version": schema.version + 1,
        "cataloged_at": at,
        "is_valid": False,
        "validation": None,
    }


def _of_images(schema: SiteSchema, change: dict[str, Any]) -> dict[str, Any]:
    drop, exclude = set(change.get("drop", ())), change.get("exclude", ())
    left_out = dict.fromkeys([*schema.image_exclude_selectors, *exclude])
    return {
        "image_include_selectors": [e for e in schema.image_include_selectors if e not in drop],
        "image_exclude_selectors": list(left_out),
    }


def decided(schema: SiteSchema, proposal: Proposal, decision: Decision) -> dict[str, Any]:
    """The fields of the schema that a person's decision sets."""
    fields = approved(schema, proposal, decision.at) if decision.status == "approved" else {}
    about = {"status": decision.status, "decided_at": decision.at, "decided_by": decision.by}
    proposals = [
        replace(each, **about, reason=decision.reason or None) if each.id == proposal.id else each
        for each in schema.schema_proposals
    ]
    if fields:
        proposals = carried(proposals, with_fields(schema, fields), decision.at)
    data = written(
        replace(
            schema,
            schema_proposals=tuple(proposals),
            decisions={**schema.decisions, proposal.id: decision},
        )
    )
    return {
        **fields,
        "schema_proposals": data["schema_proposals"],
        "decisions": data["decisions"],
    }
