"""Anchors: once a day the head of the audit chain goes to the hooks that ask for it (`on: [audit.head]`)."""

from __future__ import annotations

import msgspec

from penstock.clock import iso
from penstock.project import Project
from penstock.settings.hooks import AUDIT_HEAD
from penstock.store.store import Store

EVERY_S = 86_400.0
LOOK_S = 60.0


class AnchorChore:
    """Puts the head into the outbox. Another leader's anchor of the same day is found there."""

    def __init__(self, project: Project, store: Store) -> None:
        self._store = store
        self._clock = project.clock
        self._hooks = [each.name for each in project.settings.hooks if AUDIT_HEAD in each.on]
        self._look_at = float("-inf")

    def look(self) -> None:
        now = self._clock.monotonic()
        if not self._hooks or now < self._look_at:
            return
        self._look_at = now + LOOK_S
        head = self._store.audit.last()
        if head is None:
            return
        # What `audit verify --anchor` reads, with the name of the project, which the sender adds.
        body = msgspec.json.encode(
            {
                "event": AUDIT_HEAD,
                "seal": head.number,
                "last_event": head.last_id,
                "hash": head.hash,
                "at": iso(head.at),
            }
        ).decode()
        for hook in self._hooks:
            self._store.audit.send_head_if_due(hook, body, EVERY_S)
