"""`onboarding:` whether sources have to be proposed, checked and tried before they are ingested."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from penstock.settings.declaration import Keys, Reads, Schema, about, between, decode, no_less
from penstock.settings.document import Entry
from penstock.settings.kinds import Duration, Ref, variable
from penstock.settings.section import describe

DAY_S = 86_400.0


class OnboardingSettings(Keys, frozen=True):
    """What a source needs before anything of it is fetched."""

    required: Annotated[
        bool,
        about(
            "every source has to be proposed, checked, approved and tried first; without it, only "
            "sources that were proposed"
        ),
    ] = False
    robots_max_age_s: Annotated[
        Duration, no_less(60.0), about("maximum age of the last check of robots.txt")
    ] = field(default=7 * DAY_S, name="robots_max_age")
    terms_max_age_s: Annotated[
        Duration,
        no_less(60.0),
        about("maximum age of the last check of the terms: accepted, or read again and unchanged"),
    ] = field(default=30 * DAY_S, name="terms_max_age")
    recheck: Annotated[
        bool,
        about(
            "the service checks robots.txt and terms of approved sources when half of these times has gone; "
            "terms that read differently still wait for a person"
        ),
    ] = False
    trial_pages: Annotated[int, between(1, 100_000), about("pages of a trial run")] = 20
    trial_requests: Annotated[
        int,
        between(1, 1_000_000),
        about("requests of a trial run, beside the budgets of the source"),
    ] = 200


def read_onboarding(entry: Entry, path: str) -> OnboardingSettings:
    """`onboarding: required`, or a mapping."""
    if entry.value == "required":
        return OnboardingSettings(required=True)
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be required, or a mapping, not {describe(entry)}")
    found: OnboardingSettings = decode(OnboardingSettings, entry, path)
    return found


def onboarding_schema(ref: Ref) -> Schema:
    return {"anyOf": [{"enum": ["required"]}, ref(OnboardingSettings), variable()]}


Onboarding = Annotated[
    OnboardingSettings,
    Reads(read_onboarding, onboarding_schema, lambda _: None, below=OnboardingSettings),
]
