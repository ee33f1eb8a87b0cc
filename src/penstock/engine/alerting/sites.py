"""Sites: what agents know of them, and supplier references that wait, by source, from two collections.

Both are read whole when a host begins to lead and once an hour; in between, what was written since.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from penstock.alerts.history import SiteFacts
from penstock.store.rows import RecordRow
from penstock.store.store import Store

SITE_SCHEMAS, REFERENCES = "site_schemas", "supplier_references"
EVERY_S, WHOLE_S = 60.0, 3600.0
# Of a transaction that has not committed yet, nothing is seen.
OVERLAP_S = 120.0
# More references of one source make an alert no worse.
MOST_REFERENCES = 10_000
NEW = "new"


class SiteWatch:
    """What was read last; it is read again now and then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked_at = self._whole_at = float("-inf")
        self._sites: dict[str, tuple[str, SiteFacts]] = {}
        self._new: dict[str, tuple[str, float]] = {}
        self._since: dict[str, float] = {}

    def look(self, now: float) -> tuple[dict[str, list[SiteFacts]], dict[str, list[float]]]:
        """By source: its sites, and since when its references are new."""
        if now - self._looked_at >= EVERY_S:
            self._read(now)
        sites: dict[str, list[SiteFacts]] = defaultdict(list)
        for source, facts in self._sites.values():
            sites[source].append(facts)
        new: dict[str, list[float]] = defaultdict(list)
        for source, since in self._new.values():
            new[source].append(since)
        return sites, {source: sorted(found)[:MOST_REFERENCES] for source, found in new.items()}

    def _read(self, now: float) -> None:
        since: float | None = self._looked_at - OVERLAP_S
        if now - self._whole_at >= WHOLE_S:
            # What was removed or forgotten is missed otherwise.
            since, self._whole_at = None, now
            self._sites, self._new = {}, {}
        for row in self._store.records.each(SITE_SCHEMAS, since=since):
            self._sites[row.key] = _site(row)
        for row in self._store.records.each(REFERENCES, since=since):
            self._take_reference(row)
        self._since = {key: at for key, at in self._since.items() if key in self._new}
        self._looked_at = now

    def _take_reference(self, row: RecordRow) -> None:
        data = row.data if isinstance(row.data, dict) else {}
        if data.get("status", NEW) != NEW:
            self._new.pop(row.key, None)
            return
        if row.key not in self._since:
            self._since[row.key] = first_at(self._store, row)
        self._new[row.key] = row.source, self._since[row.key]


def first_at(store: Store, row: RecordRow) -> float:
    """When a reference was found first."""
    if row.version == 1:
        return row.updated_at
    return store.records.versions(REFERENCES, row.key)[0].updated_at


def _site(row: RecordRow) -> tuple[str, SiteFacts]:
    """Of which source it is, and its facts. What is written in another way counts as nothing."""
    data = row.data if isinstance(row.data, dict) else {}
    learnings = [each for each in _list(data, "learnings") if isinstance(each, dict)]
    notes = [each for each in _list(data, "pollution_notes") if not _is_solved(each)]
    learned_by = data.get("learned_by")
    noted = [_seconds(each.get("at")) or 0.0 for each in notes if isinstance(each, dict)]
    facts = SiteFacts(
        domain=row.key,
        confidences=tuple(
            (at, float(each["confidence"]))
            for each in learnings
            if (at := _seconds(each.get("at"))) is not None
            and isinstance(each.get("confidence"), (int, float))
        ),
        notes=len(notes),
        noted_at=max(noted, default=0.0),
    )
    return learned_by if isinstance(learned_by, str) else row.source, facts


def _list(data: dict[str, Any], name: str) -> list[Any]:
    found = data.get(name)
    return found if isinstance(found, list) else []


def _is_solved(note: Any) -> bool:
    return isinstance(note, dict) and note.get("status") == "solved"


def _seconds(text: Any) -> float | None:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
