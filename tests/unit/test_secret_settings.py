"""No error about penstock.yaml shows what a variable stands for: only the text as it was written."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.errors import ConfigError
from penstock.settings import load_settings
from penstock.settings.alert_rules import ZeroYield
from penstock.settings.alerts import ROUTE_KEYS
from penstock.settings.backfill import BACKFILL_KEYS
from penstock.settings.budget import BUDGET_KEYS, COST_KEYS, HOST_KEYS
from penstock.settings.declaration import names_of
from penstock.settings.hooks import HOOK_KEYS, TRIGGER_KEYS
from penstock.settings.limits import BREAKER_KEYS
from penstock.settings.load import RETENTION_KEYS, TOP_KEYS, WORKER_KEYS
from penstock.settings.retries import RETRY_KEYS
from penstock.settings.schedule import KEYS, NEAR_KEYS, POLICIES, SESSION_KEYS
from penstock.settings.source import FETCH_KEYS, LIMIT_KEYS, SOURCE_KEYS, STREAM_KEYS

# Each secret has one of these in it, in upper or lower case.
MARKS = ("qz7xw9", "77177")
SECRETS = (
    "77177/d",
    "name of Qz7Xw9",
    " Qz7Xw9/d",
    "https://Qz7Xw9.example/[",
    "Qz7Xw9\nsecond line",
    "./Qz7Xw9/**/../x",
    "Qz7Xw9" * 200,
)
SHAPES: tuple[Any, ...] = (
    "${S}",
    "${S}/run",
    ["${S}", "${S}"],
    {"${S}": "${S}"},
    [{"url": "https://${S}.example"}, {"url": "https://${S}.example"}],
    [{"name": "${S}", "command": ["a"]}, {"name": "${S}", "command": ["a"]}],
)
PLAIN = {"every": "1h", "cron": "@daily", "cadence": "auto", "session": {"calendar": "XNYS"}}
GROUPS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): TOP_KEYS,
    ("worker",): WORKER_KEYS,
    ("retention",): RETENTION_KEYS,
    ("retries", "slow"): RETRY_KEYS,
    ("budget",): BUDGET_KEYS,
    ("cost",): COST_KEYS,
    ("hosts", "api.example.com"): HOST_KEYS,
    ("hosts", "api.example.com", "breaker"): BREAKER_KEYS,
    ("trigger",): TRIGGER_KEYS,
    ("hooks", "0"): HOOK_KEYS,
    ("alerts", "0"): ROUTE_KEYS,
    ("alert_rules",): ("zero-yield", "store-full"),
    ("alert_rules", "zero-yield"): names_of(ZeroYield),
    ("sources", "a"): SOURCE_KEYS,
    ("sources", "a", "hooks", "0"): HOOK_KEYS,
    ("sources", "a", "limits"): LIMIT_KEYS,
    ("sources", "a", "breaker"): BREAKER_KEYS,
    ("sources", "a", "stream"): STREAM_KEYS,
    ("sources", "a", "backfill"): BACKFILL_KEYS,
    ("sources", "a", "budget"): BUDGET_KEYS,
    ("sources", "a", "cost"): COST_KEYS,
    ("sources", "a", "fetch"): FETCH_KEYS,
    ("sources", "a", "fetch", "headers"): ("X-Token",),
    ("sources", "a", "fetch", "headers_for", "https://b.example"): ("X-Token",),
    ("sources", "a", "retry"): RETRY_KEYS,
    ("sources", "a", "schedule"): KEYS,
    ("sources", "a", "schedule", "near"): NEAR_KEYS,
    ("sources", "a", "schedule", "session"): SESSION_KEYS,
}
PATHS = [(*group, key) for group, keys in GROUPS.items() for key in keys]


def document(path: tuple[str, ...], value: Any, policy: str) -> dict[str, Any]:
    """A project in which everything is right but this."""
    made: dict[str, Any] = {"sources": {"a": {"pipeline": "shop:catalogue"}}}
    at: Any = made
    for key, following in itertools.pairwise(path):
        if key == "0":
            at.append({})
            at = at[0]
        else:
            at = at.setdefault(key, [] if following == "0" else {})
    at[path[-1]] = value
    if "hooks" in path and path[-1] not in ("url", "command", "hooks"):
        at["command"] = ["notify"]
    if "alerts" in path and path[-1] not in ("to", "alerts"):
        at["to"] = "https://a.example"
    if "schedule" in path and path[-1] not in (*POLICIES, "schedule") and policy in PLAIN:
        made["sources"]["a"]["schedule"].setdefault(policy, PLAIN[policy])
    return made


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_no_error_about_a_setting_shows_what_a_variable_stands_for(
    path: tuple[str, ...], tmp_path: Path
) -> None:
    try_all(path, tmp_path, SECRETS[:2])


@pytest.mark.torture
@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_no_error_shows_it_whatever_it_is(path: tuple[str, ...], tmp_path: Path) -> None:
    try_all(path, tmp_path, SECRETS)


def try_all(path: tuple[str, ...], tmp_path: Path, secrets: tuple[str, ...]) -> None:
    policies = tuple(PLAIN) if path[-2:-1] == ("schedule",) else ("every",)
    for shape, policy in itertools.product(SHAPES, policies):
        (tmp_path / "penstock.yaml").write_text(yaml.safe_dump(document(path, shape, policy)))
        for secret in secrets:
            shown = problem(tmp_path, secret)
            assert not [mark for mark in MARKS if mark in shown.lower()], (shape, secret, shown)


def problem(folder: Path, secret: str) -> str:
    try:
        load_settings(folder, environ={"S": secret})
    except ConfigError as error:
        return f"{error.message} {error.hint} {error!r}"
    return ""


def test_an_error_says_which_text_is_wrong_as_it_was_written(tmp_path: Path) -> None:
    text = "budget: {requests: '${LIMIT}'}\n"
    (tmp_path / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path, environ={"LIMIT": "many"})
    assert caught.value.message.endswith(
        "budget.requests: must be text such as 5000/d, not what '${LIMIT}' stands for"
    )
