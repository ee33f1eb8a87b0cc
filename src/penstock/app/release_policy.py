"""What a release needs before it comes into an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.errors import Refused
from penstock.settings.release import PromotionSettings

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns


def policy_of(project: Nouns) -> PromotionSettings:
    """What the folder and the running release say: a checkout without the policy gets round nothing."""
    name = project.settings.environment_name
    written = project.settings.promotion.get(name, PromotionSettings())
    running = _of_running(project, name)
    return PromotionSettings(
        approvals=max(written.approvals, running.approvals), after=running.after or written.after
    )


def refuse_way(policy: PromotionSettings, source: str, name: str) -> None:
    """Refuse a release that does not come from where this environment takes them."""
    if policy.after is not None and source != policy.after:
        raise Refused(
            f"{name} takes releases from {policy.after} only, not from {source}",
            f"promote it to {policy.after} first",
            code="wrong_way",
        )


def _of_running(project: Nouns, name: str) -> PromotionSettings:
    store = project.connection
    running = store.releases.running()
    row = store.releases.get(running) if running else None
    document = row.manifest.configuration.get(name) if row else None
    if row is None or document is None:
        return PromotionSettings()
    found = msgspec.json.decode(store.releases.contents(row, [document])[document])
    written = (found.get("promotion") or {}).get(name) or {}
    return PromotionSettings(
        approvals=int(written.get("approvals") or 0), after=written.get("after")
    )
