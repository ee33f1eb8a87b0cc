"""A company: the fields of the dataset, and what each of them means."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Company = dict[str, Any]
Kind = Literal["string", "integer", "number", "list"]


class Field(msgspec.Struct, frozen=True):
    """One column of the dataset."""

    name: str
    kind: Kind
    meaning: str


FIELDS = (
    Field("id", "string", "Stable key of the company, made from what identifies it best"),
    Field("name", "string", "Name as the best source writes it, with its legal form"),
    Field("legal_form", "string", "Legal form in one spelling: LLC, GmbH, SARL"),
    Field(
        "legal_id", "string", "Number in the country's register of companies, without separators"
    ),
    Field("category", "string", "What the company does, in the words of its source"),
    Field("activity_code", "string", "Code of that: NAF, NACE or SIC, as its source writes it"),
    Field("street", "string", "Street and house number"),
    Field("city", "string", "City"),
    Field("postcode", "string", "Postcode in the spelling of its country"),
    Field("region", "string", "State or region; for the United States its two letters"),
    Field("country", "string", "ISO 3166-1 code of two letters"),
    Field("lat", "number", "Latitude in degrees"),
    Field("lon", "number", "Longitude in degrees"),
    Field("phone", "string", "Telephone number in E.164: +12025550123"),
    Field("email", "string", "E-mail address, its domain in lower case"),
    Field("website", "string", "Address of the company's own site"),
    Field("domain", "string", "Registered domain of the site"),
    Field("linkedin", "string", "Page of the company at LinkedIn"),
    Field("facebook", "string", "Page of the company at Facebook"),
    Field("twitter", "string", "Page of the company at X or Twitter"),
    Field("employees", "integer", "Number of employees"),
    Field("opened", "string", "Day of foundation, as YYYY-MM-DD, YYYY-MM or YYYY"),
    Field("sources", "list", "Where the company was found, in order"),
    Field("quality_score", "number", "Quality from 0 to 100; see the quality report"),
    Field("issues", "list", "What the quality checks found"),
)
FIELD_NAMES = tuple(field.name for field in FIELDS)
# Not part of the dataset: which source said what, while the company goes through the pipeline.
EVIDENCE = "evidence"


def dataset_row(company: Company) -> Company:
    """The company as the dataset has it: its fields in order, and nothing else."""
    return {name: company.get(name) for name in FIELD_NAMES}
