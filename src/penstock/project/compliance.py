"""Compliance of a source: its robots.txt and terms are read, and judged by what was accepted before.

In:    a source, what the store knows of its onboarding, a network.
Out:   the checks to write, and what they come to for the gate.
Never: a page of the source itself. This may be done whatever else of the source may not: a check that its own
       gate stopped could never open that gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import Refused
from penstock.http.compliance import RobotsSeen, TermsSeen, read_robots, read_terms
from penstock.http.failures import safe_url
from penstock.http.network import AiohttpNetwork, Network
from penstock.settings.addresses import addresses_of, urls_in
from penstock.store.onboardings import Check

if TYPE_CHECKING:
    from penstock.settings import SourceSettings
    from penstock.store.onboardings import OnboardingRow


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read: robots.txt of each origin, and the terms, if anybody knows where they are."""

    robots: list[RobotsSeen]
    terms: TermsSeen | None


@dataclass(frozen=True, slots=True)
class Checked:
    """What a look came to. `robots` and `terms` are empty where it could not be made."""

    checks: list[Check]
    robots: str = ""
    terms: tuple[str, str, str] | None = None


async def read(source: SourceSettings, terms_url: str, network: Network | None = None) -> Seen:
    """Read robots.txt of the source's addresses, and its terms."""
    opened = network or AiohttpNetwork()
    try:
        robots = await read_robots(_addresses(source), source.fetch, opened)
        terms = await read_terms(terms_url, source.fetch, opened) if terms_url else None
    finally:
        if network is None:
            await opened.close()
    return Seen(robots, terms)


def judge(
    source: SourceSettings, known: OnboardingRow | None, seen: Seen, *, accepts: bool = False
) -> Checked:
    """What this comes to, by what was accepted before; with `accepts`, the terms are accepted as they are."""
    checks, verdict = _robots_checks(source, seen.robots)
    found, judged = _terms_checks(known, seen.terms, accepts=accepts)
    return Checked([*checks, *found], verdict, judged)


def _addresses(source: SourceSettings) -> list[str]:
    """The addresses that its configuration names; else its key, if that is a host."""
    told: Mapping[str, Any] = {"params": source.params, "options": source.options}
    return list(urls_in(told)) or list(addresses_of(source.key, {}))


def _robots_checks(source: SourceSettings, seen: list[RobotsSeen]) -> tuple[list[Check], str]:
    if not seen:
        return [Check("robots", "not_needed", detail="its configuration names no site")], "allowed"
    checks = [Check("robots", s.verdict, s.url, s.hash, s.text, s.detail) for s in seen]
    verdicts = [each.verdict for each in seen]
    if "disallowed" in verdicts:
        return checks, "disallowed"
    # A host is asked with and without its `www.`; one of them need not exist.
    is_named = bool(list(urls_in({"params": source.params, "options": source.options})))
    unknown = verdicts.count("unreachable")
    return checks, "" if unknown == len(verdicts) or (is_named and unknown) else "allowed"


def _terms_checks(
    known: OnboardingRow | None, seen: TermsSeen | None, *, accepts: bool
) -> tuple[list[Check], tuple[str, str, str] | None]:
    if seen is None:
        return ([Check("terms", "accepted")], ("accepted", "", "")) if accepts else ([], None)
    if seen.trouble:
        if accepts:
            raise Refused(f"the terms can't be read: {seen.trouble}", safe_url(seen.url))
        return [Check("terms", "unreachable", seen.url, detail=seen.trouble)], None
    if accepts:
        verdict = "accepted"
    elif known is None or not known.terms_hash or known.terms_url != seen.url:
        verdict = "seen"
    else:
        verdict = "unchanged" if known.terms_hash == seen.hash else "changed"
    check = Check("terms", verdict, seen.url, seen.hash, seen.text)
    match verdict:
        case "accepted":
            return [check], ("accepted", seen.url, seen.hash)
        case "unchanged" if known is not None:
            return [check], ("accepted", known.terms_url, known.terms_hash)
        case "changed" if known is not None:
            return [check], ("changed", known.terms_url, known.terms_hash)
    return [check], None
