"""The policy of a schedule in words, with the class that its source has now where its cadence is `auto`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.schedules.definition import policy_words

if TYPE_CHECKING:
    from penstock.settings import ScheduleSettings
    from penstock.store.cadences import CadenceRow


def words_of(key: str, settings: ScheduleSettings, cadence: CadenceRow | None) -> str:
    """`every 6 hours`; `auto: every 2 to 3 days (medium)`."""
    if cadence is None:
        return policy_words(settings, key)
    return policy_words(settings, key, cadence.standing, cadence.proposed)
