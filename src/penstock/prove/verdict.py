"""What a scene came to."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["held", "broken", "not_tested"]


class Verdict(msgspec.Struct):
    """What one kind of fault came to, over all its rounds. `lost` and `duplicated` are records.

    `requests` are counted by the site that was asked, `counted` by the budget that pays for them. `wanted` is
    how many faults its first round was to have: with fewer, little was proved.
    """

    scene: str
    title: str
    state: State = "held"
    # What was done, or why it was not.
    text: str = ""
    rounds: int = 0
    faults: int = 0
    wanted: int = 1
    records: int = 0
    lost: int = 0
    duplicated: int = 0
    unfinished: int = 0
    requests: int = 0
    counted: int = 0
    recoveries_s: list[float] = []
    violations: list[str] = []
    # Whether it was begun, and nothing was hit.
    is_missed: bool = False
    seconds: float = 0.0

    def wrong(self, *problems: str) -> None:
        """Promises that did not hold."""
        if problems:
            self.state = "broken"
            self.violations += problems

    @property
    def is_thin(self) -> bool:
        """Whether it was struck less often than it was to be."""
        return self.state == "held" and self.faults < self.wanted

    def add(self, other: Verdict) -> None:
        """Another round of the same."""
        for name in ("rounds", "faults", "records", "lost", "duplicated", "unfinished"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("requests", "counted", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.recoveries_s = [*self.recoveries_s, *other.recoveries_s]
        self.violations = [*self.violations, *other.violations]
        self.text = other.text or self.text
        if other.state == "broken":
            self.state = "broken"
