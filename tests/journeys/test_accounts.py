"""Rejects, sums, empty ends and KPIs by the real command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.rig import Rig

STEPS = """
import json
from pathlib import Path

from penstock import Pipeline, Reject

HERE = Path(__file__).parent
shop = Pipeline("shop")


@shop.step(unit="run")
def discover(ctx):
    for number in range(json.loads((HERE / "pages.json").read_text())):
        yield {"page": number}


@shop.step(after="discover", unit="page", key="page")
def extract(page):
    for number in range(5):
        yield {"sku": f"{page['page']}-{number}", "n": number}


@shop.step(after="extract", unit="candidate", key="sku")
def judge(product):
    if product["n"] == 0:
        return None
    if product["n"] == 1 and not (HERE / "mended").exists():
        raise Reject("no price", code="no_price")
    if product["n"] == 2 and (HERE / "broken").exists():
        raise ValueError("broken")
    return product


@shop.step(after="judge", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["sku"], data=product, score=product["n"] / 10)
"""


class Shop:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.pages(2)

    def pages(self, number: int) -> None:
        (self.rig.folder / "pages.json").write_text(json.dumps(number))

    def flag(self, name: str, is_set: bool = True) -> None:
        file = self.rig.folder / name
        file.touch() if is_set else file.unlink()

    def said(self, *words: str, code: int = 0) -> str:
        done = self.rig.penstock(*words)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def json(self, *words: str) -> Any:
        done = self.rig.penstock(*words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    source = {"pipeline": "steps:shop", "threshold": 0.35, "retry": {"tries": 1}}
    with Rig(tmp_path, {"acme.com": source}, STEPS) as rig:
        yield Shop(rig)


def test_run_is_shown_whole_and_adds_up(shop: Shop) -> None:
    shop.flag("broken")
    shop.said("run", "acme.com", "--reason", "a look", code=3)

    told = shop.said("runs", "show", "1")

    assert "2 discovered = 2 extracted + 0 skipped + 0 failed + 0 cancelled; unaccounted 0" in told
    # Of each page: one dropped, one rejected by a step and one by the threshold, one broken, one saved.
    assert (
        "10 candidates = 2 accepted + 4 rejected + 0 duplicate + 2 dropped + 2 failed;"
        " unaccounted 0" in told
    )
    assert "below_threshold 2, no_price 2" in told
    assert "penstock rejects redrive --run 1" in told
    assert "penstock retry 1 --failed" in told
    shown = shop.json("runs", "show", "1")
    assert shown == shop.json("runs", "1")
    assert shown["account"]["candidates"]["unaccounted"] == 0
    assert shown["rejects"] == {"below_threshold": 2, "no_price": 2}
    assert sum(shown["failures"].values()) == 2

    shop.flag("broken", is_set=False)
    shop.said("retry", "1", "--failed")
    shop.said("up", "--until-idle")
    candidates = shop.json("runs", "1")["account"]["candidates"]
    assert (candidates["failed"], candidates["unaccounted"]) == (0, 0)
    # What failed is judged now: 0.2 is below the threshold.
    assert (candidates["accepted"], candidates["rejected"]) == (2, 6)


def test_rejects_are_listed_shown_and_judged_again_after_a_fix(shop: Shop) -> None:
    shop.said("run", "acme.com")
    rejects = shop.json("rejects", "list", "--code", "no_price", "--source", "acme.com")
    assert {each["key"] for each in rejects} == {"0-1", "1-1"}
    shown = shop.json("rejects", "show", str(rejects[0]["reject"]))
    assert json.loads(shown["item"]) == {"sku": rejects[0]["key"], "n": 1}
    assert "no price" in shop.said("rejects", "show", str(rejects[0]["reject"]))
    assert "0-1" in shop.said("rejects", "list", "--run", "1", "--since", "1h")

    words = ("rejects", "redrive", "--source", "acme.com", "--code", "no_price")
    assert "--yes" in shop.said(*words, code=7)
    assert shop.json("rejects", "list", "--open") == shop.json("rejects", "list")
    shop.flag("mended")
    config = shop.rig.folder / "penstock.yaml"
    config.write_text(config.read_text().replace("0.35", "0.05"))
    told = shop.said(*words, "--yes", "--reason", "the parser is mended")
    assert "run 2 redrives 2 items of 2 rejects" in told
    shop.said("up", "--until-idle")

    run = shop.json("runs", "show", "2")
    assert (run["kind"], run["state"], run["made_from"]["run"]) == ("replay", "completed", 1)
    assert run["account"]["candidates"]["accepted"] == 2
    assert [each["run"] for each in shop.json("runs", "show", "1")["led_to"]] == [2]
    assert run["reason"] == "the parser is mended"
    kept = {each["key"] for each in shop.json("records", "product")}
    assert kept >= {"0-1", "1-1"}
    assert "no such rejects" in shop.said(*words, "--yes", code=7)
    shop.rig.assert_sound()


def test_run_that_yields_nothing_all_at_once_is_partial(shop: Shop) -> None:
    for _ in range(3):
        shop.said("run", "acme.com")
    shop.pages(0)

    shop.said("run", "acme.com", code=3)

    assert "empty though it usually yields" in shop.said("runs", "show", "4")
    assert [event.kind for event in shop.rig.events("quality.zero_yield")] == ["quality.zero_yield"]


def test_kpis_are_told_and_none_is_made_up(shop: Shop) -> None:
    assert shop.said("kpis").count("no data") == 5
    shop.said("run", "acme.com")
    shop.said("run", "acme.com")

    found = shop.json("kpis", "--days", "7", "--source", "acme.com")["kpis"]

    assert found["completion_without_restart"]["value"] == 100.0
    assert found["duplicates_per_million"]["value"] == pytest.approx(500_000)
    assert found["operator_steps_to_recover"]["value"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("runs", "show"), "show which run?"),
        (("runs", "show", "x"), "'x' is not a number"),
        (("runs", "show", "7"), "there is no run 7"),
        (("rejects", "show", "7"), "there is no reject 7"),
        (("rejects", "list", "--since", "never"), "--since can't be 'never'"),
        (("rejects", "list", "--source", "nobody"), "no source 'nobody'"),
        (("rejects", "redrive", "--yes"), "redrive what?"),
        (("rejects", "redrive", "--id", "7", "--yes"), "there is no reject 7"),
        (("rejects",), "needs VERB"),
        (("kpis", "--days", "0"), "'0' is not a number from 1 up"),
    ],
)
def test_wrong_words_are_answered_in_one_line(
    shop: Shop, words: tuple[str, ...], told: str
) -> None:
    assert shop.rig.store.upkeep.check() == [], "a database to look into"

    said = shop.said(*words, code=2)

    assert told in said
    assert "Traceback" not in said
