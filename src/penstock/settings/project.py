"""The keys at the top of penstock.yaml."""

from typing import Annotated, Any, Literal

import msgspec

from penstock.errors import ConfigError
from penstock.settings.address import parse_store
from penstock.settings.alert_rules import (
    RULE_NAMES,
    RuleChanges,
    read_rules,
    rules_schema,
)
from penstock.settings.alerts import RouteKeys, RouteSettings, read_routes, routes_schema
from penstock.settings.budget import (
    BudgetKeys,
    BudgetSettings,
    CostSettings,
    HostLimits,
    read_hosts,
)
from penstock.settings.cells import CellKeys, read_cells
from penstock.settings.collections import CollectionKeys, read_collections
from penstock.settings.declaration import Keys, MadeOf, Reads, Usual, about, names_of
from penstock.settings.document import Entry
from penstock.settings.hooks import (
    HookKeys,
    HookSettings,
    TriggerSettings,
    hooks_schema,
    read_hooks,
)
from penstock.settings.kinds import by_name, text_schema
from penstock.settings.log import LogSettings
from penstock.settings.metrics import MetricsSettings
from penstock.settings.onboarding import Onboarding, OnboardingSettings
from penstock.settings.release import PromotionSettings, ReleaseSettings, read_promotion
from penstock.settings.retention import Retention
from penstock.settings.retries import RetryChoice, RetryKeys, read_retries
from penstock.settings.secrets import MASK
from penstock.settings.section import read_text
from penstock.settings.source import SourceKeys
from penstock.settings.tracing import TracingSettings
from penstock.settings.worker import WorkerSettings


def _read_store(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    try:
        return parse_store(text)
    except ConfigError as error:
        raise entry.error(path, error.message) from None


def _read_sources(entry: Entry, path: str) -> dict[str, Entry]:
    if not isinstance(entry.value, dict):
        raise entry.error(path, "must be a mapping of source names to their settings")
    return entry.value


def _read_nothing(entry: Entry, path: str) -> None:
    """Defaults were laid under the sources before anything was read."""


class ProjectKeys(Keys, frozen=True):
    """A project: its sources, its database, and what holds for all of them."""

    project: Annotated[
        str | None,
        about(
            "name of the project. The database stores it and refuses other projects; see [many "
            "hosts](many-hosts.md#several-projects-in-one-database)"
        ),
        Usual("the folder's name"),
    ] = None
    store: Annotated[
        str,
        Reads(_read_store, text_schema),
        about(
            "database: `sqlite:FILE`, relative to this file, or "
            "`postgresql://USER@HOST/DATABASE` for [many hosts](many-hosts.md); `?schema=NAME` "
            "puts the project into its own schema"
        ),
    ] = "sqlite:penstock.db"
    snapshots: Annotated[
        str,
        about(
            "where raw payloads are stored: a folder, `file:///FOLDER`, `s3://BUCKET/PREFIX`, "
            "`gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`; see [snapshots.md](snapshots.md)"
        ),
    ] = "snapshots"
    cells: Annotated[
        dict[str, Any],
        Reads(read_cells, lambda ref: by_name(ref(CellKeys)), each=CellKeys),
        about(
            "other databases that sources are divided over, beside `store:`, which is the cell `main`: "
            '`{north: {number: 1, store: "postgresql://…"}}`; see [many cells](cells.md)'
        ),
        Usual("all sources are in `store`"),
    ] = msgspec.field(default_factory=dict)
    worker: WorkerSettings = WorkerSettings()
    retention: Retention = Retention()
    log: LogSettings = LogSettings()
    retries: Annotated[
        dict[str, RetryChoice],
        Reads(read_retries, lambda ref: by_name(ref(RetryKeys)), each=RetryKeys),
        about(
            "your own retry classes: `{patient: {class: provider-safe, tries: 8, base: 1m, cap: "
            "2h, unknown_tries: 3}}`; missing keys come from `class`, by default `fast`; see "
            "[pipelines.md](pipelines.md#retry-classes)"
        ),
        Usual("none"),
    ] = msgspec.field(default_factory=dict)
    budget: Annotated[
        BudgetSettings,
        MadeOf(BudgetKeys),
        about(
            "budget of all sources together, written like a source's `budget`; `AMOUNT/run` "
            "applies to each run"
        ),
        Usual("no bound"),
    ] = BudgetSettings()
    cost: Annotated[
        CostSettings,
        about("`{request: 0.002}`: cost of one request of any source"),
        Usual("nothing"),
    ] = CostSettings()
    hosts: Annotated[
        dict[str, HostLimits],
        Reads(read_hosts, lambda ref: by_name(ref(HostLimits)), each=HostLimits),
        about(
            "limits per host for all sources together: `{api.example.com: {concurrency: 2, rate: "
            "30/m}}`; see [below](#budgets-costs-and-hosts)"
        ),
        Usual("no limits"),
    ] = msgspec.field(default_factory=dict)
    collections: Annotated[
        dict[str, Any],
        Reads(read_collections, lambda ref: by_name(ref(CollectionKeys)), each=CollectionKeys),
        about("what records must look like: `{product: {schema: product.schema.json}}`"),
        Usual("anything"),
    ] = msgspec.field(default_factory=dict)
    hooks: Annotated[
        tuple[HookSettings, ...],
        Reads(read_hooks, hooks_schema, below=HookKeys),
        about(
            "webhooks and commands that are called when a run of any source ends; see "
            "[below](#hooks-webhooks-and-commands)"
        ),
        Usual("none"),
    ] = ()
    alerts: Annotated[
        tuple[RouteSettings, ...],
        Reads(read_routes, routes_schema, below=RouteKeys),
        about(
            'routes on which alerts are delivered: `[{to: "${SLACK_URL}", when: severity >= '
            'high, quiet: "22:00-06:00"}]`; see [alerts.md](alerts.md#routes)'
        ),
        Usual("none"),
    ] = ()
    alert_rules: Annotated[
        RuleChanges,
        Reads(read_rules, lambda ref: rules_schema(RULE_NAMES, ref), lambda _: None),
        about(
            "thresholds of alert rules for the project and all its sources: `{zero-yield: {runs: "
            "3}, stale-source: off}`, or `off` for no alerts; see [alerts.md](alerts.md#rules)"
        ),
        Usual("all on"),
    ] = msgspec.field(default_factory=dict)
    release: ReleaseSettings = ReleaseSettings()
    promotion: Annotated[
        dict[str, PromotionSettings],
        Reads(read_promotion, lambda ref: by_name(ref(PromotionSettings)), each=PromotionSettings),
        about(
            "what a release needs before it comes into an environment: `{production: {approvals: "
            "2, after: staging}}`; see [releases.md](releases.md#promotion)"
        ),
        Usual("nothing"),
    ] = msgspec.field(default_factory=dict)
    timers: Annotated[
        Literal["penstock", "external"],
        about(
            "who starts schedules by time (`every`, `cron`, `cadence`): `external` is another scheduler, for "
            "which `penstock export` has written them; see "
            "[another scheduler](run-on-a-schedule.md#let-another-scheduler-start-them)"
        ),
    ] = "penstock"
    trigger: Annotated[
        TriggerSettings,
        about(
            'access to signals over HTTP: `{token: "${PENSTOCK_TRIGGER_TOKEN}", hosts: '
            "[hooks.example.com], max_bytes: 256KB}`; see "
            "[below](#signals-files-and-other-sources)"
        ),
        Usual("this machine"),
    ] = TriggerSettings()
    tracing: Annotated[
        TracingSettings,
        about(
            "traces of runs, jobs, attempts and fetches for OpenTelemetry: `{endpoint: "
            '"http://127.0.0.1:4318"}`; see [tracing.md](tracing.md)'
        ),
        Usual("nothing is traced"),
    ] = TracingSettings()
    metrics: Annotated[
        MetricsSettings,
        about("metrics for Prometheus: `{max_sources: 500}`; see [metrics.md](metrics.md)"),
        Usual("200 sources"),
    ] = MetricsSettings()
    onboarding: Annotated[
        Onboarding,
        about(
            "`required`, or any of the keys of [onboarding.md](onboarding.md#settings): sources are "
            "proposed, checked and tried before they are ingested"
        ),
        Usual("sources of this file are active"),
    ] = OnboardingSettings()
    defaults: Annotated[
        None,
        Reads(_read_nothing, lambda ref: ref(SourceKeys)),
        about(
            "keys of a source that apply to every source that does not set them; see "
            "[below](#defaults-of-sources)"
        ),
        Usual("none"),
    ] = None
    sources: Annotated[
        dict[str, Any], Reads(_read_sources, lambda ref: by_name(ref(SourceKeys)), each=SourceKeys)
    ] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ProjectKeys({MASK})"


TOP_KEYS = names_of(ProjectKeys)
