"""Budgets with the real command: the stop, what is shown, what was lost (nothing), and how it goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.job import JobState
from tests.journeys.rig import CountingSite, Rig, counting_site, kill, source_of, until
from tests.journeys.test_many_hosts import pids_by_host, stop
from tests.journeys.test_pacing import PIPELINE, a_site, source


def configure(rig: Rig, **changes: Any) -> None:
    """Change the configuration of the one source, or of the project."""
    file = rig.folder / "penstock.yaml"
    config = json.loads(file.read_text())
    project = {"hosts", "project_budget"}
    config["sources"]["shop"] |= {n: value for n, value in changes.items() if n not in project}
    if "hosts" in changes:
        config["hosts"] = changes["hosts"]
    if "project_budget" in changes:
        config["budget"] = changes["project_budget"]
    file.write_text(json.dumps(config))


def requested(site: CountingSite) -> int:
    return sum(site.counts().values())


def test_day_budget_stops_a_run_and_a_higher_one_lets_it_go_on(tmp_path: Path) -> None:
    budget = {"requests": "6/d", "bytes": "1GB/month", "timezone": "Europe/Paris"}
    with counting_site() as site:
        shop = source_of(site, 12, budget=budget, cost={"request": 0.01})
        with Rig(tmp_path, {"shop": shop}) as rig:
            done = rig.penstock("run", "shop", "--json")
            assert done.returncode == 3, done.stderr
            run_id = json.loads(done.stdout.splitlines()[-1])["run"]
            run = rig.run(run_id)
            assert (run.state, run.end_reason) == ("partial", "budget")
            assert requested(site) == run.requests == 6
            assert run.money == pytest.approx(0.06)
            assert {job.tries for job in rig.jobs(JobState.QUARANTINED)} == {0}
            assert rig.store.upkeep.check() == []

            shown = {
                (each["measure"], each["period"]): each
                for each in json.loads(rig.penstock("budget", "--json").stdout)
            }
            requests = shown["requests", "day"]
            assert (requests["used"], requests["left"], requests["percent"]) == (6, 0, 100)
            assert requests["is_exhausted"] is True
            assert requests["resets_at"].endswith((":00:00.000Z",))
            assert requests["per_accepted_record"] == pytest.approx(6 / 5)
            size = shown["bytes", "month"]
            assert 0 < size["used"] == run.bytes
            assert size["reserved"] == 0
            table = rig.penstock("budget", "--source", "shop").stdout
            assert re.search(r"shop +6 requests a day +6 requests +0 requests +100 ", table)

            spent = "the budget of 6 requests a day of shop is exhausted"
            anew = f"{spent}; it resets in "
            for command in ("status", "sources"):
                assert re.search(rf"shop .*{anew}.*; penstock budget", rig.penstock(command).stdout)
            [told] = json.loads(rig.penstock("status", "--json").stdout)["exhausted_budgets"]
            assert (told["source"], told["measure"], told["used"]) == ("shop", "requests", 6)
            assert told["resets_at"] == requests["resets_at"]
            assert spent in rig.penstock("explain", "shop").stdout

            # Nothing is begun while the budget is what it is; more is, as soon as it may.
            again = rig.penstock("run", "shop", "--json")
            assert again.returncode == 3
            assert requested(site) == 6
            configure(rig, budget={"requests": "100/d"})
            process = rig.start("up")
            until(lambda: rig.run(run_id).state == "completed", "the run is whole", process=process)
            until(lambda: rig.run(run_id + 1).is_ended, "the other, too", process=process)
            stop(process)
            assert rig.run(run_id + 1).state == "completed"
            assert len(rig.store.records.of("page", limit=1000)) == 12
            # Both sitemaps, and the pages of both runs: each once.
            assert requested(site) == 2 + 2 * 12


def test_worker_that_is_killed_leaks_nothing_of_a_budget(tmp_path: Path) -> None:
    """What it had reserved counts as used, and the hosts' places are free again."""
    with counting_site() as site:
        shop = source_of(site, 30, page_ms=150, budget={"bytes": "10GB/d"})
        with Rig(tmp_path, {"shop": shop}) as rig:
            configure(rig, hosts={f"127.0.0.1:{site.port}": {"concurrency": 2}})
            [run_id] = rig.enqueue("shop")
            process = rig.start("up")
            until(lambda: held(rig) > 0, "something is reserved", process=process)
            pid = rig.worker_pid(process)
            assert pid is not None
            kill(pid)
            until(lambda: rig.run(run_id).is_ended, "the run has ended", process=process)
            stop(process)
            assert rig.run(run_id).state == "completed"
            assert held(rig) == 0
            [budget] = rig.store.budgets.all()
            assert budget.used >= rig.run(run_id).bytes
            rig.assert_sound()


def test_two_hosts_share_a_budget_and_a_limit(tmp_path: Path, database: str) -> None:
    """Counted by the site: not one request more than the budget, and each of them in the accounts."""
    with a_site() as site:
        shops = {key: source(site, "pages", 60, concurrency=8) for key in ("one", "two")}
        with Rig(tmp_path, shops, PIPELINE, {"slots": 6}, store=database) as rig:
            file = rig.folder / "penstock.yaml"
            config = json.loads(file.read_text())
            config["budget"] = {"requests": "70/d", "bytes": "1GB/d"}
            config["hosts"] = {site.url.removeprefix("http://"): {"concurrency": 3}}
            file.write_text(json.dumps(config))
            one, two = rig.start("up"), rig.start("up")
            pids = pids_by_host(rig, one, two)
            runs = rig.enqueue("one", "two")
            until(
                lambda: all(rig.run(run).is_ended for run in runs), "both have ended", within_s=90
            )
            stop(one, two)

            assert len(site.seen) == 70
            assert site.workers <= set(pids)
            found = [rig.run(run) for run in runs]
            assert sum(run.requests for run in found) == 70
            # Every answer is of one size, and its headers count with its body.
            in_all = sum(run.bytes for run in found)
            assert in_all % 70 == 0
            assert in_all > 70 * len(b"hello")
            assert {run.end_reason for run in found} <= {"budget", ""}
            assert "budget" in {run.end_reason for run in found}
            used = {row.measure: (row.used, row.held) for row in rig.store.budgets.all()}
            assert used == {"requests": (70, 0), "bytes": (in_all, 0)}
            rig.assert_sound()


def held(rig: Rig) -> float:
    return sum(row.held for row in rig.store.budgets.all())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"budget": {"requests": 5000}}, "budget.requests: must be text such as 5000/d, not"),
        ({"budget": {"requests": "5000"}}, "must be an amount for each run, d or month"),
        ({"budget": {"requests": "5.5/d"}}, "needs a whole number before the slash"),
        ({"budget": {"requests": "0/d"}}, "must be more than nothing"),
        ({"budget": {"bytes": "5/d"}}, "is not a size"),
        ({"budget": {"seconds": "5/d"}}, "is not a duration"),
        ({"budget": {"money": "five/d"}}, "needs a number before the slash"),
        ({"budget": {"requests": ["5/d", "6/day"]}}, "has two bounds for one day"),
        ({"budget": {"request": "5/d"}}, "unknown key, did you mean 'requests'?"),
        ({"budget": {"requests": "5/d", "timezone": "Paris"}}, "is not a time zone"),
        ({"cost": {"requests": 1}}, "unknown key"),
        ({"cost": {"request": -1}}, "must be from 0"),
        ({"hosts": {"http://a.b/": {"rate": "1/s"}}}, "is not a host; write it as"),
        ({"hosts": {"a.b": {}}}, "needs a limit: concurrency, rate, windows or breaker"),
        ({"hosts": {"a.b": {"windows": "9-5"}}}, "hosts.a.b.windows: '9-5' is not a window"),
        ({"hosts": {"a.b": {"concurency": 1}}}, "unknown key, did you mean 'concurrency'?"),
    ],
)
def test_wrong_configuration_is_told_in_one_line(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with Rig(tmp_path, {"shop": {"pipeline": "steps:pages"}}) as rig:
        configure(rig, **changes)
        done = rig.penstock("budget")
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) <= 2


def test_what_is_asked_of_the_command_in_vain(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": {"pipeline": "steps:pages"}}) as rig:
        assert "no budgets; `budget:` in penstock.yaml sets them" in rig.penstock("budget").stdout
        assert json.loads(rig.penstock("budget", "--json").stdout) == []
        wrong = rig.penstock("budget", "--source", "shopp")
        assert (wrong.returncode, "did you mean 'shop'?" in wrong.stderr) == (2, True)
        wrong = rig.penstock("budget", "--run", "99")
        assert (wrong.returncode, "there is no run 99" in wrong.stderr) == (2, True)
        configure(rig, budget={"requests": "5/d"}, project_budget={"money": "1.50/month"})
        shown = rig.penstock("budget").stdout
        assert re.search(r"the project +1.50 money a month +0.00 money +1.50 money +0 ", shown)
