"""Sites that agents have learned, and proposals about their schemas, as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, ContentKey, Time, View

if TYPE_CHECKING:
    from penstock.agents.schema import Proposal, SiteSchema
    from penstock.store.rows import RecordRow


class SiteView(View, frozen=True, kw_only=True):
    """What is known of a site. `doubts` is empty if records may be extracted by its schema.

    `score` is the validator's, null where this version was not validated. `source` wrote the schema last.
    """

    domain: ContentKey[str]
    site_type: str | None
    version: int
    confidence: float | None
    score: float | None
    is_trusted: bool
    doubts: Content[list[str]]
    open_proposals: int
    pollution_notes: int
    cataloged_at: str | None
    last_verified_at: str | None
    source: str


class SiteDetail(View, frozen=True, kw_only=True):
    """The whole schema of a site, and who wrote it last."""

    domain: ContentKey[str]
    version: int
    is_trusted: bool
    doubts: Content[list[str]]
    data: Content[dict[str, Any]] = msgspec.field(name="schema")
    source: str
    updated_at: Time


class ProposalView(View, frozen=True, kw_only=True):
    """A change of a site's schema that a person decides: `open`, `approved` or `rejected`.

    State `outdated`: the schema was changed first. An open one that is `outdated` can't be approved.
    `kind`: `images` (a polluted selector that keeps failing), `redesign`, `model` or `conflict`. `change` has
    the fields of the schema that approval sets, `justification` what speaks for it.
    """

    id: str = msgspec.field(name="proposal")
    domain: ContentKey[str]
    kind: str
    state: str
    priority: int
    name: Content[str]
    description: Content[str]
    fields: Content[list[str]]
    justification: Content[dict[str, Any]]
    change: Content[dict[str, Any]]
    proposed_at: str
    version: int
    is_outdated: bool = msgspec.field(name="outdated")
    decided_at: str | None
    decided_by: str | None
    reason: str | None
    source: str


class DecisionView(View, frozen=True, kw_only=True):
    """What became of a proposal, or would become: `version` is that of the schema after it.

    `changed` are the fields of the schema that are set. `is_done` is false for a dry run.
    """

    domain: ContentKey[str]
    proposal: str
    state: str
    version: int
    changed: list[str]
    is_done: bool = msgspec.field(name="done")
    source: str


def site_view(row: RecordRow, schema: SiteSchema, doubts: list[str]) -> SiteView:
    check = schema.validation
    return SiteView(
        domain=schema.domain,
        site_type=schema.site_type,
        version=schema.version,
        confidence=schema.extraction_confidence,
        score=check.score if check is not None and check.version == schema.version else None,
        is_trusted=not doubts,
        doubts=doubts,
        open_proposals=len(schema.open_proposals),
        pollution_notes=sum(note.status != "solved" for note in schema.pollution_notes),
        cataloged_at=schema.cataloged_at,
        last_verified_at=schema.last_verified_at,
        source=row.source,
    )


def site_detail(row: RecordRow, schema: SiteSchema, doubts: list[str]) -> SiteDetail:
    return SiteDetail(
        domain=schema.domain,
        version=schema.version,
        is_trusted=not doubts,
        doubts=doubts,
        data=msgspec.to_builtins(schema),
        source=row.source,
        updated_at=row.updated_at,
    )


def proposal_view(source: str, schema: SiteSchema, proposal: Proposal) -> ProposalView:
    from penstock.agents.proposals import is_outdated

    is_over = proposal.status == "open" and is_outdated(schema, proposal)
    return ProposalView(
        id=proposal.id,
        domain=schema.domain,
        kind=proposal.kind,
        state=proposal.status,
        priority=proposal.priority,
        name=proposal.name,
        description=proposal.description,
        fields=list(proposal.fields),
        justification=proposal.justification,
        change=proposal.change,
        proposed_at=proposal.proposed_at,
        version=proposal.version,
        is_outdated=is_over or proposal.status == "outdated",
        decided_at=proposal.decided_at,
        decided_by=proposal.decided_by,
        reason=proposal.reason,
        source=source,
    )
