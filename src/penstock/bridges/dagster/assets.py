"""Assets: the collections that a source saves, with what each run did to them, checks and freshness."""

# No postponed annotations: Dagster reads the type of `context` from them.

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from penstock.app import Project
from penstock.bridges.dagster.jobs import (
    BACKFILL,
    NETWORK_RETRY,
    PipelineConfig,
    Terms,
    drain_for,
    prepare_for,
    terms_of,
)
from penstock.bridges.dagster.outcomes import failures_shown
from penstock.bridges.drains import Partial, run_url
from penstock.bridges.places import ProjectPlace, place_of
from penstock.bridges.quality import (
    DESCRIPTIONS,
    CollectionState,
    checks_of,
    collections_of,
    states_of,
)
from penstock.bridges.tasks import identifier_of, pipeline_tasks

# Dagster does not look more often.
SHORTEST_FRESHNESS_S = 60.0


def pipeline_assets(
    project: ProjectPlace,
    source: str,
    collections: Sequence[str] | None = None,
    *,
    name: str = "",
    key_prefix: Sequence[str] = (),
    group: str | None = None,
    kind: str | None = None,
    partial: Partial = "warn",
    retry_policy: dg.RetryPolicy | None = NETWORK_RETRY,
    deadline_s: float | None = None,
    dashboard: str = "",
    partitions: dg.PartitionsDefinition[Any] | None = None,
    partition_param: str = "",
) -> dg.AssetsDefinition:
    """The collections that a source saves, as assets that one op makes: it drains all stages in order.

    Without `collections` they are those of penstock.yaml. Each materialisation says how many records there
    are and what the run did. Asset checks: its records fit the schema of the collection, the run rejected
    nothing, no alert about the source is open. The source's `freshness` is the assets' freshness policy.
    """
    opened = place_of(project).open()
    terms = terms_of(
        project,
        source,
        kind=BACKFILL if partitions is not None and not partition_param else kind,
        partial=partial,
        deadline_s=deadline_s,
        dashboard=dashboard,
        retry_policy=retry_policy,
        retry_policy_others=None,
        partition_param=partition_param,
    )
    names = collections_of(opened, collections)
    stages = [task.name for task in pipeline_tasks(terms.place, source, terms.kind).tasks]
    keys = {each: dg.AssetKey([*key_prefix, identifier_of(each)]) for each in names}

    @dg.multi_asset(
        name=name or identifier_of(f"penstock_{terms.source}"),
        specs=[_spec(opened, terms, each, keys[each], group) for each in names],
        check_specs=[
            dg.AssetCheckSpec(check, asset=keys[each], description=DESCRIPTIONS[check])
            for each in names
            for check in checks_of(opened, each)
        ],
        partitions_def=partitions,
        retry_policy=retry_policy,
        pool=terms.pool,
    )
    def drained(context: dg.AssetExecutionContext, config: PipelineConfig) -> Iterator[Any]:
        with failures_shown():
            run_id = prepare_for(context.op_execution_context, terms, config)
        for stage in stages:
            drain_for(context.op_execution_context, terms, run_id, stage)
        with failures_shown():
            states = states_of(terms.place, run_id, terms.source, names)
        for each in states:
            yield _result(each, keys[each.collection], run_url(terms.dashboard, run_id))

    return drained


def _spec(
    project: Project, terms: Terms, collection: str, key: dg.AssetKey, group: str | None
) -> dg.AssetSpec:
    promised_s = project.source(terms.source).freshness_s
    policy = None
    if promised_s is not None:
        bound = timedelta(seconds=max(promised_s, SHORTEST_FRESHNESS_S))
        policy = dg.FreshnessPolicy.time_window(fail_window=bound)
    return dg.AssetSpec(
        key,
        group_name=group,
        description=f"Records of {collection}, from {terms.source}.",
        kinds={"penstock"},
        freshness_policy=policy,
        metadata={"source": terms.source, "collection": collection},
    )


def _result(state: CollectionState, key: dg.AssetKey, url: str) -> dg.MaterializeResult:  # type: ignore[type-arg]
    metadata = dict(state.metadata)
    metadata["dagster/row_count"] = metadata.pop("records")
    if url:
        metadata["dashboard"] = dg.MetadataValue.url(url)
    severities = {True: dg.AssetCheckSeverity.ERROR, False: dg.AssetCheckSeverity.WARN}
    checks = [
        dg.AssetCheckResult(
            passed=check.passed,
            asset_key=key,
            check_name=check.name,
            severity=severities[check.is_error],
            metadata=dict(check.metadata),
        )
        for check in state.checks
    ]
    return dg.MaterializeResult(asset_key=key, metadata=metadata, check_results=checks)
