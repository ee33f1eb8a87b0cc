"""Collections as assets: what was done to them, checks of their quality, freshness, and partitions."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from penstock.bridges.dagster import pipeline_assets
from penstock.errors import UsageError
from tests.bridges.scenes import assert_sound, configured, days_rig, rig_of, source

SCHEMA = {"type": "object", "required": ["number"]}


def with_schema(folder: Path, schema: dict[str, Any]) -> None:
    (folder / "page.json").write_text(json.dumps(schema))
    configured(folder, collections={"page": {"schema": "page.json"}})


def checks(result: dg.ExecuteInProcessResult) -> dict[str, tuple[bool, str]]:
    return {
        each.check_name: (each.passed, each.severity.value)
        for each in result.get_asset_check_evaluations()
    }


def test_collections_are_materialised_with_counts_and_checks(tmp_path: Path) -> None:
    with rig_of(tmp_path, 5, bad=[3]) as rig:
        with_schema(tmp_path, SCHEMA)
        made = pipeline_assets(tmp_path, "shop", dashboard="http://localhost:8787")

        result = dg.materialize([made])

        assert result.success
        [event] = result.get_asset_materialization_events()
        assert event.asset_key == dg.AssetKey(["page"])
        shown = event.materialization.metadata
        assert shown["dagster/row_count"].value == 4
        assert (shown["run"].value, shown["run state"].value) == (1, "partial")
        assert shown["quarantined"].value == 1
        assert shown["dashboard"].value == "http://localhost:8787/runs/1"
        assert checks(result) == {
            "schema": (True, "ERROR"),
            "rejects": (True, "WARN"),
            "alerts": (True, "WARN"),
        }
        assert rig.run(1).state == "partial"


def test_records_that_do_not_fit_their_schema_fail_the_check(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3):
        with_schema(tmp_path, SCHEMA)
        assert dg.materialize([pipeline_assets(tmp_path, "shop")]).success
        with_schema(tmp_path, {"type": "object", "required": ["price"]})
        configured(tmp_path, sources={"shop": source(0)})

        result = dg.materialize([pipeline_assets(tmp_path, "shop")])

        assert checks(result)["schema"] == (False, "ERROR")


def test_rejected_items_fail_the_check_of_rejects(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3) as rig:
        steps = rig.folder / "steps.py"
        text = steps.read_text().replace('raise ValueError("no price")', 'ctx.reject("no_price")')
        steps.write_text(text)
        configured(tmp_path, sources={"shop": source(3, bad=[1])})

        result = dg.materialize([pipeline_assets(tmp_path, "shop", ["page"])])

        assert checks(result)["rejects"] == (False, "WARN")
        assert_sound(rig)


def test_failed_run_materialises_nothing(tmp_path: Path) -> None:
    with rig_of(tmp_path, 2, bad=[0, 1]):
        made = pipeline_assets(tmp_path, "shop", ["page"], retry_policy=None)
        result = dg.materialize([made], raise_on_error=False)
        assert not result.success
        assert result.get_asset_materialization_events() == []


def test_freshness_of_the_source_is_the_policy_of_its_assets(tmp_path: Path) -> None:
    with rig_of(tmp_path, 1):
        configured(tmp_path, sources={"shop": {**source(1), "freshness": "6h"}})
        made = pipeline_assets(
            tmp_path, "shop", ["page", "report"], key_prefix=["shop"], group="etl"
        )
        for spec in made.specs:
            assert spec.group_name == "etl"
            assert spec.freshness_policy == dg.FreshnessPolicy.time_window(timedelta(hours=6))
        assert made.keys == {dg.AssetKey(["shop", "page"]), dg.AssetKey(["shop", "report"])}


def test_partition_of_an_asset_is_a_backfill_of_its_days(tmp_path: Path) -> None:
    days = dg.DailyPartitionsDefinition(start_date="2024-01-01")
    with days_rig(tmp_path) as rig:
        made = pipeline_assets(tmp_path, "prices", ["day"], partitions=days)
        assert dg.materialize([made], partition_key="2024-01-04").success
        rig.assert_records({"AAPL 2024-01-04"}, "day")


def test_assets_without_collections_are_refused_in_one_line(tmp_path: Path) -> None:
    with rig_of(tmp_path, 1), pytest.raises(UsageError, match="which collections") as refused:
        pipeline_assets(tmp_path, "shop")
    assert "collections=" in refused.value.hint
