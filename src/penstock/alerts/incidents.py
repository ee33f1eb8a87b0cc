"""Incidents: alerts that one cause has raised are one incident, of which people are told once.

A host that does not answer raises an alert at every source that reads from it; workers that are gone make
every schedule late. The cause that the most findings share is the one that they are put under.

Give it all findings of a look, also those whose alerts stand already: a finding that is new belongs to the
incident of an alert that stands if `by_incident` puts their findings together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock.alerts.causes import BROKEN, HELD_UP
from penstock.alerts.history import Cause, Finding
from penstock.alerts.rules import SEVERITIES
from penstock.counting import count

# What is late or behind when nobody works.
BY_WORKERS = ("schedule-missed", "stale-source", "backlog-growth")
# Sources of one host that break within this of each other have broken by the same cause.
TOGETHER_S = 6 * 3600.0
# Causes that a shared host explains better.
GUESSED = ("site-change", "unknown", "workers", "schedule")


def attributed(
    findings: Sequence[Finding], hosts: Mapping[str, Sequence[str]]
) -> tuple[Finding, ...]:
    """The findings of one look at the whole project, each with the cause that explains the most.

    `hosts` are those that each source fetches from.
    """
    workers = next((each for each in findings if each.rule == "dead-workers"), None)
    found = [_by_workers(each, workers) for each in findings]
    shared = _shared_hosts(found, hosts)
    return tuple(_by_host(each, shared) for each in found)


def _by_workers(finding: Finding, workers: Finding | None) -> Finding:
    if workers is None or finding.rule not in BY_WORKERS or finding.cause.kind == "host":
        return finding
    return msgspec.structs.replace(finding, cause=workers.cause)


def _shared_hosts(
    findings: Iterable[Finding], hosts: Mapping[str, Sequence[str]]
) -> dict[str, Cause]:
    """For each source that broke with another one of its host, that host."""
    broken: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.rule in BROKEN and finding.cause.kind in (*GUESSED, "host"):
            for host in hosts.get(finding.source, ()):
                broken[host].append(finding)
    explained: dict[str, Cause] = {}
    for host in sorted(broken, key=lambda each: (-_sources(broken[each]), each)):
        together = _together(broken[host])
        if _sources(together) > 1:
            words = f"{count(_sources(together), 'source')} that read from {host} broke together"
            cause = Cause(kind="host", key=host, words=words)
            for each in together:
                explained.setdefault(each.source, cause)
    return explained


def _sources(findings: Iterable[Finding]) -> int:
    return len({finding.source for finding in findings})


def _together(findings: list[Finding]) -> list[Finding]:
    """The most findings that began within one stretch of time."""
    ordered = sorted(findings, key=lambda each: each.since)
    stretches = (
        [each for each in ordered if 0.0 <= each.since - first.since <= TOGETHER_S]
        for first in ordered
    )
    return max(stretches, key=_sources, default=[])


def _by_host(finding: Finding, shared: Mapping[str, Cause]) -> Finding:
    cause = shared.get(finding.source)
    if cause is None or finding.rule not in (*BROKEN, *HELD_UP):
        return finding
    if finding.cause.kind not in GUESSED:
        return finding
    return msgspec.structs.replace(finding, cause=cause)


def incident_key(finding: Finding) -> str:
    """What findings of one incident have in common."""
    if finding.cause.kind in ("site-change", "unknown", "own-change", "credentials"):
        return f"source:{finding.source}"
    return f"{finding.cause.kind}:{finding.cause.key}"


def by_incident(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The findings of each incident, the one that stands for it first: the most severe, then the earliest."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[incident_key(finding)].append(finding)
    return {key: sorted(each, key=_order) for key, each in found.items()}


def _order(finding: Finding) -> tuple[int, float, str]:
    return -SEVERITIES.index(finding.severity), finding.since, finding.rule
