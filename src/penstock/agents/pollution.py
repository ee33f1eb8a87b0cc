"""Pollution: what image QA finds becomes notes; a selector that keeps failing becomes a question to a person.

A selector fails once in each version of the schema: QA that runs again before the mapper has counts nothing.
The third failure ends the loop: its note is escalated, and nothing more is refreshed for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from penstock.agents.gallery.check import Finding
from penstock.agents.proposals import made_about
from penstock.agents.schema import Note, Proposal, SiteSchema, Status
from penstock.counting import count

MOST_FAILURES = 3
# A site is refreshed so often in a row, whatever its selectors are called by then.
MOST_REFRESHES = 6
# In one page, an image may be there by mistake.
FEWEST_PAGES = 2
KEPT_NOTES = 200


@dataclass
class Pollution:
    """The notes of a site after a look at its galleries: all, those to refresh for, those that end here."""

    notes: list[Note] = field(default_factory=list)
    fresh: list[Note] = field(default_factory=list)
    escalated: list[Note] = field(default_factory=list)


def noted(schema: SiteSchema, findings: Sequence[Finding], pages: int, at: str) -> Pollution:
    """The schema's notes with what was found now. What is no longer found is solved."""
    counted = [each for each in findings if len(each.pages) >= min(FEWEST_PAGES, pages)]
    accepted, waiting = _asked(schema, "rejected"), _asked(schema, "open")
    now = {note.id: note for note in (each.note(at) for each in counted) if note.id not in accepted}
    found = Pollution()
    for old in schema.pollution_notes:
        if old.id not in now:
            stays = old.id in accepted or old.id in waiting
            found.notes.append(old if stays else replace(old, status="solved", count=0))
    before = {note.id: note for note in schema.pollution_notes}
    for note in now.values():
        _take_up(found, schema, _counted(schema, note, before.get(note.id)))
    found.notes = found.notes[-KEPT_NOTES:]
    return found


def _counted(schema: SiteSchema, note: Note, before: Note | None) -> Note:
    """With how many versions the selector has failed in, whatever was wrong with it."""
    same = [each for each in schema.pollution_notes if each.selector == note.selector]
    failed = max((each.count for each in same), default=0)
    is_new = not any(each.version == schema.version and each.count == failed for each in same)
    is_known = before is not None and before.version == schema.version
    status = before.status if before is not None and is_known else "open"
    failures = max(1, failed + (1 if is_new else 0))
    return replace(note, count=failures, version=schema.version, status=status)


def _take_up(found: Pollution, schema: SiteSchema, note: Note) -> None:
    if note.status != "escalated" and _is_over(schema, note):
        note = replace(note, status="escalated")
        found.escalated.append(note)
    elif note.status == "open":
        found.fresh.append(note)
    found.notes.append(note)


def _is_over(schema: SiteSchema, note: Note) -> bool:
    return note.count >= MOST_FAILURES or schema.image_refreshes >= MOST_REFRESHES


def _asked(schema: SiteSchema, status: Status) -> set[str]:
    """Notes about which a person was asked. Where they rejected it, the images are right."""
    return {
        each.about
        for each in schema.schema_proposals
        if each.kind == "images" and each.status == status
    }


def question(schema: SiteSchema, note: Note) -> Proposal:
    """What a person is asked about a selector that failed too often, with pages and images to look at."""
    key = hashlib.sha256(f"{note.id} {note.version}".encode()).hexdigest()[:8]
    change: dict[str, object] = (
        {"exclude": note.exclude} if note.exclude else {"drop": (note.selector,)}
    )
    act = f"no longer take images from {note.selector}"
    if note.exclude:
        act = f"exclude {', '.join(note.exclude)}"
    proposal = Proposal(
        id=key,
        kind="images",
        name=f"{note.selector}: {note.reason}",
        description=(
            f"The images of {note.selector} are polluted ({note.reason}) in "
            f"{count(note.count, 'version')} of the schema, also after they were learned again. "
            f"Approve to {act}; reject to keep these images."
        ),
        proposed_at=note.at,
        fields=("images",),
        justification={
            "note": note.id,
            "selector": note.selector,
            "reason": note.reason,
            "failures": note.count,
            "pages": note.pages,
            "images": note.images,
        },
        priority=3,
        change=change,
    )
    return made_about(schema, proposal)


def image_selectors(
    before: SiteSchema | None, learned: SiteSchema
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What to include and exclude: as learned, without what people dropped, and with what is known of each.

    What was excluded from a selector that is no longer used is forgotten: it was of another layout.
    """
    if before is None:
        return learned.image_include_selectors, learned.image_exclude_selectors
    decided = [e for e in before.schema_proposals if e.kind == "images" and e.status == "approved"]
    dropped = {css for each in decided for css in each.change.get("drop", ())}
    include = [css for css in learned.image_include_selectors if css not in dropped]
    exclude = dict.fromkeys(learned.image_exclude_selectors)
    for each in decided:
        if each.justification.get("selector") in include:
            exclude.update(dict.fromkeys(each.change.get("exclude", ())))
    for note in before.pollution_notes:
        if note.selector in include:
            exclude.update(dict.fromkeys(note.exclude))
    return tuple(include), tuple(exclude)
