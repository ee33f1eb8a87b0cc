"""Trust: whether records may be extracted by a schema, and if not, why and what helps."""

from __future__ import annotations

import msgspec

from penstock.agents.moments import age_s
from penstock.agents.schema import SiteSchema
from penstock.counting import count
from penstock.errors import ConfigError
from penstock.jobs.failures import Permanent
from penstock.settings.units import parse_duration

LEAST_SCORE = 0.8
CAUSE = "site schema not trusted"


class TrustParams(msgspec.Struct, frozen=True):
    """`stale_after` is how long a schema is believed, `least_score` what the validator must find."""

    stale_after: str = "30d"
    least_score: float = LEAST_SCORE


def doubts(schema: SiteSchema | None, now: float, rules: TrustParams) -> list[str]:
    """Everything that speaks against a schema, each with what to do; nothing if it is trusted."""
    if schema is None:
        return ["nobody has learned the site yet: run its mapper"]
    found = []
    if not any(each.fields for each in schema.schema_data.page_types.values()):
        found.append("it has no type of page with fields: the mapper found none in its sample")
    age = age_s(schema.cataloged_at, now)
    if age is None or age > duration_s(rules.stale_after):
        found.append(f"it was learned {_ago(age)}, longer than {rules.stale_after}: run the mapper")
    found += _doubts_of_validation(schema, now, rules)
    if proposals := schema.open_proposals:
        found.append(
            f"{len(proposals)} of its proposals {'is' if len(proposals) == 1 else 'are'} open: "
            "approve or reject first"
        )
    return found


def _doubts_of_validation(schema: SiteSchema, now: float, rules: TrustParams) -> list[str]:
    check = schema.validation
    if check is None or check.version != schema.version:
        return [f"version {schema.version} was not validated: run the validator"]
    if check.score < rules.least_score:
        why = "; ".join(check.problems[:3]) or "no page could be judged"
        return [
            f"the validator scored it {check.score:.2f}, less than {rules.least_score:g}: {why}"
        ]
    age = age_s(check.at, now)
    if age is None or age > duration_s(rules.stale_after):
        return [f"it was validated {_ago(age)}, longer than {rules.stale_after}"]
    return []


def require_trusted(schema: SiteSchema | None, domain: str, now: float, rules: TrustParams) -> None:
    """Refuse to extract by a schema that is not trusted."""
    if found := doubts(schema, now, rules):
        raise Permanent(f"the schema of {domain} is not trusted: {'; '.join(found)}", cause=CAUSE)


def duration_s(text: str) -> float:
    """A duration of params in seconds."""
    try:
        return parse_duration(text)
    except ConfigError as error:
        raise Permanent(f"params: {error.message}") from None


def _ago(age: float | None) -> str:
    return "at no known time" if age is None else f"{count(round(age / 86400), 'day')} ago"
