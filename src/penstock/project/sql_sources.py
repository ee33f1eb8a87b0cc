"""What SQL clients see of sources: which job, which site and whose, from `params` and the pipeline's name."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import ConfigError
from penstock.settings import Settings, SourceSettings, normalise_source
from penstock.store.inbox import SqlSource

LONGEST = 500


def described_sources(settings: Settings, ids: Mapping[str, int]) -> list[SqlSource]:
    """Every source of penstock.yaml as SQL clients see it."""
    return [_described(source, ids[key]) for key, source in settings.sources.items()]


def job_type(source: SourceSettings) -> str:
    """The name of its pipeline: `agents:mapper` is a mapper. A source with a connector alone has its name."""
    return source.pipeline.rpartition(":")[2] or source.connector


def _described(source: SourceSettings, source_id: int) -> SqlSource:
    site_url = _param(source, "site_url") or source.key
    organization = _param(source, "organization_id") or source.key
    return SqlSource(
        source_id,
        job_type(source),
        site_url,
        organization,
        _param(source, "organization_name") or organization,
        domain_of(site_url),
        source.private,
    )


def domain_of(address: str) -> str:
    """The host that an address names, normalised as keys of sources are."""
    try:
        return normalise_source(address).partition("/")[0].partition("?")[0]
    except ConfigError:
        return address


def _param(source: SourceSettings, name: str) -> str:
    value = source.params.get(name)
    return str(value)[:LONGEST] if isinstance(value, (str, int)) else ""
