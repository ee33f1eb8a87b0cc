"""Merging: one company of the rows of a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.builder.claims import Claim, confidence_of, with_claims
from penstock.builder.company import EVIDENCE, Company
from penstock.builder.matching.clusters import Cluster, match
from penstock.builder.matching.scores import THRESHOLD
from penstock.builder.normalize.names import name_key

# Of the row, and not of the company.
_OF_ROWS = frozenset({"source", "key", "sources", "id", "kind", "run", EVIDENCE})
# Of a company as it was before it was joined with another.
JUDGED = frozenset({"issues", "quality_score", "checks"})
# An address is taken from one row: parts of two addresses make none.
_ADDRESS = ("street", "city", "postcode", "region", "country")
_ID_BYTES = 8
SURE = 0.999


def resolve(rows: Sequence[Company], threshold: float = THRESHOLD) -> Iterator[Company]:
    """One company for each cluster of these rows, each with an id of its own."""
    taken: dict[str, int] = {}
    for cluster in match(rows, threshold):
        company = merge(cluster)
        number = taken[company["id"]] = taken.get(company["id"], 0) + 1
        # Two companies with nothing but the same name: the first keeps the id.
        yield company if number == 1 else {**company, "id": f"{company['id']}-{number}"}


def rejoin(companies: Sequence[Company], threshold: float = THRESHOLD) -> Iterator[Company]:
    """Companies that enrichment has shown to be one, as one, with an id that one of them had.

    They must be surely one: what enrichment found of both may come from one and the same page. What was
    judged of each (`JUDGED`) is left out of a joined one: it is another company.
    """
    for cluster in match(companies, max(threshold, SURE)):
        members = cluster.members
        if len(members) == 1:
            yield members[0]
            continue
        bare = [{k: v for k, v in each.items() if k not in JUDGED} for each in members]
        joined = merge(Cluster(tuple(bare), cluster.weakest))
        known = sorted(members, key=lambda each: (each.get("legal_id") is None, each["id"]))
        if joined["id"] not in {each["id"] for each in members}:
            joined["id"] = known[0]["id"]
        checks = [each["checks"] for each in reversed(known) if each.get("checks")]
        yield {**joined, "checks": {name: said for each in checks for name, said in each.items()}}


def merge(cluster: Cluster) -> Company:
    """The best of what the rows of a cluster say, with the rest as evidence."""
    members = cluster.members
    base = max(members, key=_address_parts)
    company: Company = {}
    for row in [base, *(each for each in members if each is not base)]:
        company = with_claims(
            company, _claims(row, is_base=row is base, has_address=_address_parts(base) > 0)
        )
    company["name"] = _best_name(members)
    sources = dict.fromkeys(source for row in members for source in _sources(row))
    return {"id": company_id(company), **company, "sources": sorted(sources)}


def _claims(row: Company, *, is_base: bool, has_address: bool) -> Iterator[Claim]:
    evidence = row.get(EVIDENCE) or {}
    for field, value in row.items():
        if field in _OF_ROWS or (field in _ADDRESS and has_address and not is_base):
            continue
        source = evidence.get(field, {}).get("source") or next(iter(_sources(row)), "")
        yield Claim(field, value, source, confidence_of(row, field))


def _sources(row: Company) -> list[str]:
    found = row.get("sources")
    return (
        list(found)
        if isinstance(found, list)
        else [str(row["source"])]
        if row.get("source")
        else []
    )


def _address_parts(row: Company) -> int:
    return sum(row.get(part) is not None for part in _ADDRESS) if row.get("street") else 0


def _best_name(members: Sequence[Company]) -> str:
    """The spelling that most rows agree on but for its case and marks; of these, one in mixed case.

    So a name in capitals, or one with a typing error, does not prevail over the others.
    """
    counts: dict[str, int] = {}
    for row in members:
        counts[name_key(row["name"])] = counts.get(name_key(row["name"]), 0) + 1

    def rank(row: Company) -> tuple[Any, ...]:
        text = row["name"]
        is_mixed = not text.isupper() and not text.islower()
        return (
            -counts[name_key(text)],
            not is_mixed,
            -confidence_of(row, "name"),
            row.get("legal_form") is None,
            text,
        )

    return str(min(members, key=rank)["name"])


def company_id(company: Company) -> str:
    """A key made from what identifies the company best: its register number, else its name and place."""
    name = name_key(company["name"])
    if company.get("legal_id"):
        parts = ["id", company.get("country"), company["legal_id"]]
    elif company.get("postcode"):
        parts = ["place", company.get("country"), company["postcode"], name]
    elif company.get("domain"):
        parts = ["domain", company["domain"], name]
    else:
        parts = ["name", company.get("country"), company.get("city"), company.get("phone"), name]
    text = "\n".join(str(part or "") for part in parts)
    return hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
