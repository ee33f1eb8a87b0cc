"""The schema of a site: plain data, as the collection `site_schemas` keeps it under the site's domain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

SiteType = Literal[
    "directory", "dealer_website", "auction_house", "marketplace", "builder", "manufacturer", "broker",
    "service_shop", "supplier", "fabricator", "oem", "platform",
]  # fmt: skip
Method = Literal["json-ld", "microdata", "opengraph", "label", "css"]
# `outdated`: the schema changed before anybody decided.
Status = Literal["open", "approved", "rejected", "outdated"]
# What a proposal is made about: when one of these changes, it may be about something that is gone.
CONTENTS = ("schema_data", "image_include_selectors", "image_exclude_selectors")


class FieldSchema(msgspec.Struct, frozen=True):
    """Where a field stands: selectors in the order in which they are tried."""

    selectors: tuple[str, ...]
    method: Method
    required: bool
    confidence: float


class PageType(msgspec.Struct, frozen=True):
    """Pages of one kind: the pattern of their path and query, and their fields; a list has none."""

    url_pattern: str
    fields: dict[str, FieldSchema] = {}


class SchemaData(msgspec.Struct, frozen=True):
    page_types: dict[str, PageType] = {}
    available_fields: tuple[str, ...] = ()
    required_fields: tuple[str, ...] = ()


class Note(msgspec.Struct, frozen=True):
    """What image QA found wrong with a gallery, and what came of it.

    `count` is how many versions of the schema the selector has failed in, `version` the last of them.
    `exclude` are selectors that find these images and none that is right.
    """

    id: str
    at: str
    selector: str
    reason: str
    images: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    status: Literal["open", "solved", "escalated"] = "open"
    count: int = 1
    version: int = 0
    exclude: tuple[str, ...] = ()


class Proposal(msgspec.Struct, frozen=True):
    """A change of the schema that a person decides, with what speaks for it.

    `version` and `contents` are those of the schema that it was made about.
    """

    id: str
    kind: Literal["redesign", "conflict", "images", "model"]
    name: str
    description: str
    proposed_at: str
    fields: tuple[str, ...] = ()
    justification: dict[str, Any] = {}
    priority: int = 5
    status: Status = "open"
    decided_at: str | None = None
    decided_by: str | None = None
    reason: str | None = None
    # Fields of the schema that are set where it is approved; `drop` and `exclude`: selectors of images.
    change: dict[str, Any] = {}
    version: int = 0
    contents: str = ""

    @property
    def about(self) -> str:
        """The note that it is about, where it is about images."""
        return str(self.justification.get("note", ""))


class Decision(msgspec.Struct, frozen=True):
    """What a person decided about a proposal."""

    status: Literal["approved", "rejected"]
    at: str
    by: str
    reason: str = ""


class Validation(msgspec.Struct, frozen=True):
    """What the validator found on pages that nothing was learned from; `fields`: on which share of them."""

    at: str
    version: int
    score: float
    pages: int
    fields: dict[str, float] = {}
    problems: tuple[str, ...] = ()


class Learning(msgspec.Struct, frozen=True):
    """One time that the mapper learned the site: how sure it was."""

    at: str
    version: int
    confidence: float | None = None


class ModelUse(msgspec.Struct, frozen=True):
    """One time that a model was asked about the site: which, how its pages were built, and what was paid.

    `is_right`: something that it proposed was found right on pages that it had not seen.
    """

    at: str
    model: str
    fingerprint: str = ""
    cost: float = 0.0
    is_right: bool = False


class Candidate(msgspec.Struct, frozen=True):
    """What was learned after a redesign, and is tried beside the schema: the fields that it would set."""

    id: str
    learned_at: str
    change: dict[str, Any] = {}
    held_out: tuple[str, ...] = ()


class SiteSchema(msgspec.Struct, frozen=True):
    """All that is known of how a site is built. What is not known is null."""

    domain: str
    site_name: str | None = None
    site_type: SiteType | None = None
    schema_data: SchemaData = SchemaData()
    classification_confidence: float | None = None
    image_include_selectors: tuple[str, ...] = ()
    image_exclude_selectors: tuple[str, ...] = ()
    pollution_notes: tuple[Note, ...] = ()
    supplier_references: tuple[dict[str, Any], ...] = ()
    schema_proposals: tuple[Proposal, ...] = ()
    cataloged_at: str | None = None
    last_verified_at: str | None = None
    is_valid: bool = False
    extraction_confidence: float | None = None
    cataloged_by: Literal["system", "manual", "ai"] = "system"
    version: int = 1
    validation: Validation | None = None
    # Pages of items that nothing was learned from.
    held_out: tuple[str, ...] = ()
    # Why the mapper learned it.
    learned_for: str | None = None
    # The source whose mapper has learned it.
    learned_by: str | None = None
    # The source that extracts records by it.
    extracted_by: str | None = None
    # What may take its place, while it is tried.
    candidate: Candidate | None = None
    # The last times that it was learned, the oldest first.
    learnings: tuple[Learning, ...] = ()
    # The last times that models were asked about it.
    model_uses: tuple[ModelUse, ...] = ()
    # What the validator found the last times, the oldest first.
    scores: tuple[float, ...] = ()
    # How often in a row the mapper has learned it because of its images.
    image_refreshes: int = 0
    # By proposal. Only people write them, and only agents write proposals: neither overwrites the other.
    decisions: dict[str, Decision] = {}

    @property
    def open_proposals(self) -> tuple[Proposal, ...]:
        return tuple(each for each in self.schema_proposals if each.status == "open")


def with_candidate(schema: SiteSchema) -> SiteSchema | None:
    """The schema as its candidate would have it; None without one."""
    if schema.candidate is None:
        return None
    changed = with_fields(schema, schema.candidate.change)
    return msgspec.structs.replace(changed, held_out=schema.candidate.held_out)


def with_fields(schema: SiteSchema, fields: Mapping[str, Any]) -> SiteSchema:
    """The schema with these fields set, as they are saved."""
    return msgspec.convert(
        {**written(schema), **msgspec.to_builtins(fields)}, SiteSchema, strict=False
    )


def contents_of(schema: SiteSchema) -> str:
    """A hash of what records are extracted by: page types with their fields, and selectors of images."""
    found = [getattr(schema, name) for name in CONTENTS]
    return hashlib.sha256(msgspec.json.encode(found, order="sorted")).hexdigest()[:12]


def read_schema(data: dict[str, Any]) -> SiteSchema:
    """A schema as it was saved; what later versions add to a record is left alone."""
    notes = data.get("pollution_notes")
    if isinstance(notes, list):
        data = {**data, "pollution_notes": [_note(each) for each in notes]}
    found = msgspec.convert(data, SiteSchema, strict=False)
    decided = tuple(_decided(each, found.decisions) for each in found.schema_proposals)
    return msgspec.structs.replace(found, schema_proposals=decided)


def _note(note: Any) -> Any:
    """SQL clients may append a plain text: what is polluted."""
    if not isinstance(note, str):
        return note
    return Note(id=note, at="", selector=note, reason="noted by a client")


def _decided(proposal: Proposal, decisions: dict[str, Decision]) -> Proposal:
    found = decisions.get(proposal.id)
    if found is None:
        return proposal
    return msgspec.structs.replace(
        proposal,
        status=found.status,
        decided_at=found.at,
        decided_by=found.by,
        reason=found.reason or None,
    )


def written(schema: SiteSchema) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(schema)
    return found
