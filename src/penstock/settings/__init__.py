"""Settings: penstock.yaml and the environment, read once into frozen values.

In:    a project folder, its penstock.yaml, an overlay penstock.<environment>.yaml, ${NAME} variables.
Out:   Settings, complete and checked; or one line that names file, line, key and the nearest valid key.
Never: importing the project's code, touching the store or the network, repeating a secret.
"""

from penstock.settings.load import FILE_NAME, find_project, load_settings
from penstock.settings.secrets import redact
from penstock.settings.units import (
    normalise_source,
    parse_cron,
    parse_duration,
    parse_rate,
    parse_size,
    parse_timezone,
)
from penstock.settings.values import (
    BackfillSettings,
    BreakerSettings,
    BudgetLimit,
    BudgetSettings,
    CostSettings,
    FetchPolicy,
    HostLimits,
    Limits,
    Retention,
    RetryChoice,
    ScheduleSettings,
    Settings,
    SourceSettings,
    StreamSettings,
    WorkerSettings,
)

__all__ = [
    "FILE_NAME",
    "BackfillSettings",
    "BreakerSettings",
    "BudgetLimit",
    "BudgetSettings",
    "CostSettings",
    "FetchPolicy",
    "HostLimits",
    "Limits",
    "Retention",
    "RetryChoice",
    "ScheduleSettings",
    "Settings",
    "SourceSettings",
    "StreamSettings",
    "WorkerSettings",
    "find_project",
    "load_settings",
    "normalise_source",
    "parse_cron",
    "parse_duration",
    "parse_rate",
    "parse_size",
    "parse_timezone",
    "redact",
]
