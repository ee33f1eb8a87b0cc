"""The job of a builder: what it takes, and how a mistake in it is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.builder.job import Job, job_of
from penstock.builder.registry import builder
from penstock.errors import ConfigError
from penstock.pipeline.selection import overlaid, select


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"crawl": {"max_pages": 0}}, "job: crawl.max_pages: Expected `int` >= 1"),
        ({"crawl": {"pages": 3}}, "job: crawl: Object contains unknown field `pages`"),
        ({"dumps": [{}]}, "job: dumps[0]: Object missing required field `path`"),
        ({"country": "USA"}, "job: country: 'USA' is no country"),
        (
            {"dumps": [{"path": "a.csv", "fields": {"nmae": "x"}}]},
            "job: dumps[0].fields has no 'nmae'; did you mean 'name'?",
        ),
        ({"scoring": {"weights": {"mail": 3}}}, "job: scoring.weights has no 'mail'; "),
        ({"serp": {"provider": "searx"}}, "job: serp.url is missing: where is the provider?"),
        (
            {"serp": {"provider": "json", "url": "https://search.example.com"}},
            "job: serp.url: the address of a `json` provider has {query} in it",
        ),
        ({"address": {"geocoder": "photon"}}, "job: address.url is missing"),
        ({"output": {"formats": ["xls"]}}, "job: output.formats[0]: Invalid enum value 'xls'"),
        ({"kpi_targets": {"max_dupes": 1}}, "job: kpi_targets has no 'max_dupes'; "),
    ],
)
def test_a_mistake_is_named_with_its_place(params: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        job_of(params)
    assert refused.value.message.startswith(problem), refused.value.message
    assert "\n" not in refused.value.message


def test_an_empty_job_has_the_defaults_and_targets_are_laid_over_the_usual_ones() -> None:
    assert job_of({}) == Job()
    job = job_of({"kpi_targets": {"max_dup_pct": 5}, "scoring": {"weights": {"lat": 0}}})
    assert (job.targets["max_dup_pct"], job.targets["min_quality_score"]) == (5, 80)
    assert (job.weights["lat"], job.weights["phone"]) == (0, 15)


@pytest.mark.parametrize("profile", [*builder.profiles])
def test_what_a_profile_lays_over_the_params_is_a_job(profile: str) -> None:
    config = select(builder, profile).config
    assert isinstance(job_of(overlaid({"country": "US"}, config)), Job)


def test_no_secret_of_a_job_is_in_its_text() -> None:
    job = job_of(
        {
            "maps": {"key": "s3cr3t"},
            "serp": {"headers": {"X-Api-Key": "s3cr3t"}},
            "api": {"endpoints": [{"url": "https://acme.com/a", "auth": {"bearer": "s3cr3t"}}]},
        }
    )
    assert "s3cr3t" not in repr(job)


def test_its_schema_refuses_unknown_keys_everywhere() -> None:
    schema = msgspec.json.schema(Job)["$defs"]
    assert len(schema) > 10
    for name, part in schema.items():
        assert part["additionalProperties"] is False, name
