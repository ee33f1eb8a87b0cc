"""A city of companies with sites, lists and services on loopback: its dataset is built, and compared."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from penstock.builder.city.evaluation import Evaluation
from penstock.builder.city.project import SOURCE, source_of
from penstock.builder.city.server import City
from penstock.builder.city.world import World
from tests.builder.city_run import CityRun

SMALL, LARGE = World(7, 60), World(7, 500)
PAGE = Path(__file__).parents[2] / "docs" / "builder.md"
# Shares that were measured, a little lower; docs/builder.md has what they are.
LEAST = {"precision": 0.95, "recall": 0.96, "coverage": 0.90}


def figures(found: Evaluation, profile: str = "standard") -> str:
    """The line of the page."""
    shares = (found.precision, found.recall, found.coverage)
    return f"| `{profile}` | {found.expected} | {' | '.join(f'{each:.3f}' for each in shares)} |"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> CityRun:
    """A city of sixty, built once; it is not served any more when tests look at the result."""
    with City(SMALL) as city:
        run = CityRun(tmp_path_factory.mktemp("built") / "city", city)
        found = run.run()
    assert found.returncode == 0, found.stderr
    return run


def test_the_dataset_of_a_city_is_what_is_true_of_it(built: CityRun) -> None:
    found = built.evaluation()
    print("\n".join(found.lines()))
    assert figures(found) in PAGE.read_text("utf-8")
    assert found.precision >= LEAST["precision"]
    assert found.recall >= LEAST["recall"]
    assert found.coverage >= LEAST["coverage"]
    assert all(each.precision >= 0.94 for each in found.fields.values()), found.fields


def test_every_request_that_the_city_got_was_counted(built: CityRun) -> None:
    usage = built.json("runs", "show", "1")["usage"]
    assert usage["requests"] == built.city.counted
    assert usage["bytes"] >= built.city.bytes_sent


def test_rows_that_name_nobody_are_rejected_and_kept(built: CityRun) -> None:
    run = built.json("runs", "show", "1")
    assert run["rejects"] == {"no_name": run["counts"]["rejected"]}
    assert run["counts"]["quarantined"] == 0


def test_the_package_is_whole_and_its_sums_are_right(built: CityRun) -> None:
    lines = (built.package / "sha256.txt").read_text().splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    assert set(sums) == {
        "companies.csv", "companies.jsonl", "companies.parquet", "companies.xlsx",
        "data_dictionary.md", "manifest.json", "quality_report.html",
    }  # fmt: skip
    for name, digest in sums.items():
        assert hashlib.sha256((built.package / name).read_bytes()).hexdigest() == digest
    manifest = json.loads((built.package / "manifest.json").read_bytes())
    assert manifest["companies"] == len(built.companies())
    assert "<svg" in (built.package / "quality_report.html").read_text()


def test_a_run_says_which_of_its_targets_are_met(built: CityRun) -> None:
    [about] = built.records("companies_runs").values()
    assert about["packaged"] == len(built.companies())
    assert about["packaged"] == about["companies"] - about["joined"]
    assert about["rows"] == len(built.records("companies_rows"))
    figures = {each["name"]: each for each in about["kpis"]}
    assert figures["min_quality_score"]["is_met"] is True
    assert figures["min_lines_per_s"]["value"] == pytest.approx(
        about["rows"] / about["seconds"], rel=0.01
    )
    assert about["all_kpis_met"] == all(each["is_met"] for each in about["kpis"])


def test_a_replay_without_the_city_gives_the_same_companies(built: CityRun) -> None:
    asked = built.city.counted
    found = built.command("replay", "1", "--json")
    assert found.returncode == 0, found.stderr
    totals = json.loads(found.stdout)["totals"]
    assert (totals["added"], totals["removed"], totals["changed"]) == (0, 0, 0)
    # Each company, that it is finished, and the rows of pages: dumps and APIs are run-level steps.
    rows = built.records("companies_rows").values()
    of_pages = sum(any(name.startswith("page:") for name in row["sources"]) for row in rows)
    assert of_pages > 10
    assert totals["same"] == 2 * len(built.records("companies")) + of_pages
    assert built.city.counted == asked


def test_a_run_that_is_killed_goes_on_and_gives_the_same_dataset(
    built: CityRun, tmp_path: Path
) -> None:
    with City(SMALL) as city:
        run = CityRun(tmp_path / "city", city)
        run.kill_when(requests=120)
        run.kill_when(requests=200)
        found = run.run()
    assert found.returncode == 0, found.stderr
    assert run.dataset == built.dataset
    assert run.records("companies_rows") == built.records("companies_rows")
    shown = run.json("runs", "show", "1")["counts"]
    assert shown["quarantined"] == 0
    # A record that was saved twice would count as updated or unchanged.
    before = built.json("runs", "show", "1")["counts"]
    assert {k: shown[k] for k in ("inserted", "updated", "unchanged", "rejected")} == {
        k: before[k] for k in ("inserted", "updated", "unchanged", "rejected")
    }


def test_a_budget_holds_at_the_servers_and_the_run_goes_on_with_more(
    built: CityRun, tmp_path: Path
) -> None:
    with City(SMALL) as city:
        run = CityRun(tmp_path / "city", city, budget={"requests": "300/run"})
        stopped = run.run()
        assert stopped.returncode != 0
        assert city.counted <= 300
        assert "the budget of 300 requests of run 1 is exhausted" in stopped.stdout
        assert not run.package.exists()
        run.configure(sources={SOURCE: source_of(city)})
        assert run.command("retry", "1", "--failed").returncode == 0
        found = run.run()
        assert found.returncode == 0, found.stderr
    assert run.dataset == built.dataset
    assert run.json("runs", "show", "1")["usage"]["requests"] == city.counted


def test_two_workers_on_postgres_give_the_same_dataset(
    built: CityRun, tmp_path: Path, database: str
) -> None:
    with City(SMALL) as city:
        run = CityRun(tmp_path / "city", city)
        run.configure(store=database)
        assert run.command("run", SOURCE, "--detach").returncode == 0
        found = run.command("up", "--until-idle", "--workers", "2")
    assert found.returncode == 0, found.stderr
    assert run.dataset == built.dataset
    assert run.json("runs", "show", "1")["usage"]["requests"] == city.counted


def test_maps_fill_gaps_and_no_site_that_is_nobodys_comes_back_with_them(tmp_path: Path) -> None:
    with City(SMALL) as city:
        run = CityRun(tmp_path / "city", city, profile="deep")
        found = run.run()
    assert found.returncode == 0, found.stderr
    evaluation = run.evaluation()
    print("\n".join(evaluation.lines()))
    assert figures(evaluation, "deep") in PAGE.read_text("utf-8")
    assert evaluation.fields["domain"].precision == 1.0


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_a_city_of_five_hundred_is_built_as_well(tmp_path: Path) -> None:
    with City(LARGE) as city:
        run = CityRun(tmp_path / "city", city)
        found = run.run(within_s=800)
    assert found.returncode == 0, found.stderr
    evaluation = run.evaluation()
    print("\n".join(evaluation.lines()))
    assert figures(evaluation) in PAGE.read_text("utf-8")
    assert evaluation.precision >= LEAST["precision"]
    assert evaluation.recall >= LEAST["recall"]
    assert evaluation.coverage >= LEAST["coverage"]
