"""The steps of the builder in whole runs on virtual time, also when something is not as it should be."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.app import Project
from penstock.app.views.quarantine import EntryFilter
from penstock.builder.registry import builder as registry
from penstock.errors import PipelineError
from penstock.http.failures import FetchError
from penstock.http.network import RawResponse, Request
from penstock.pipeline.registry import function_of
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, answer
from tests.connectors.browser_trial import SharedBrowsers

PEORIA = {"city": "Peoria", "zip": "61602"}
ROWS = [
    {"name": "Acme Tools LLC", "street": "12 Main St", **PEORIA, "phone": "309 555 0101"},
    {"name": "Bell Bakery", "street": "9 Oak St", **PEORIA, "website": "www.acme.com"},
]
HOME = (
    "<title>Bell Bakery</title><p>9 Oak St, Peoria, IL 61602</p>"
    '<a href="mailto:info@acme.com">mail</a>'
)
Script = Callable[[Request], Awaitable[RawResponse]]
Params = dict[str, Any]


class Builder:
    """A project with one source that builds a dataset of a dump; the network is scripted."""

    def __init__(self, folder: Path, params: Params, profile: Any = "quick") -> None:
        self.folder = folder
        self.write(ROWS)
        source = {
            "pipeline": "penstock.builder.registry:builder",
            "profile": profile,
            "params": {"country": "US", "dumps": [{"path": "rows.jsonl"}], **params},
        }
        config = {"project": "test", "store": "sqlite:penstock.db", "sources": {"list": source}}
        (folder / "penstock.yaml").write_text(json.dumps(config))

    def write(self, rows: list[dict[str, Any]]) -> None:
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    @contextmanager
    def ran(
        self,
        script: Script | None = None,
        kind: str | None = None,
        shared: SharedBrowsers | None = None,
    ) -> Iterator[Ended]:
        """A run to its end, and the project to look at."""
        network, clock = ScriptedNetwork(script or nothing_there), VirtualClock()
        browsers = None
        if shared is not None:
            shared.clock, browsers = clock, shared.browsers
        with Project.load(self.folder) as project:
            with Simulation(project, network, seed=1, clock=clock, browsers=browsers) as simulation:
                number = project.run("list", kind) if kind else project.run("list")
                simulation.run()
            ended = Ended(project, number, network)
            print(ended.failures)
            yield ended

    def dataset(self) -> list[dict[str, Any]]:
        path = self.folder / "out" / "package" / "companies.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


class Ended:
    """A run that has ended."""

    def __init__(self, project: Project, number: int, network: ScriptedNetwork) -> None:
        self.project = project
        self.run = project.require_run(number)
        self.requests = network.requests

    @property
    def failures(self) -> set[str]:
        found = self.project.quarantine.list(EntryFilter(run_id=self.run.id)).items
        return {each.error for each in found}

    def records(self, collection: str) -> dict[str, Any]:
        return {row.key: row.data for row in self.project.records(collection)}


async def nothing_there(request: Request) -> RawResponse:
    return answer("", status=404)


def test_a_dump_becomes_a_package_without_any_request(tmp_path: Path) -> None:
    builder = Builder(tmp_path, {"output": {"formats": ["jsonl"]}})
    with builder.ran() as ended:
        assert ended.run.state == "completed"
        assert ended.requests == []
    assert names(builder.dataset()) == {"Acme Tools LLC", "Bell Bakery"}


def names(companies: list[dict[str, Any]]) -> set[str]:
    return {each["name"] for each in companies}


def test_a_key_that_a_job_has_not_fails_the_run_and_is_named(tmp_path: Path) -> None:
    with Builder(tmp_path, {"crwl": {"max_pages": 3}}).ran() as ended:
        assert ended.run.state == "failed"
        assert ended.failures == {
            "Permanent: job: Object contains unknown field `crwl` (keys: docs/builder.md)"
        }


def test_a_job_that_reads_nothing_is_refused(tmp_path: Path) -> None:
    with Builder(tmp_path, {"dumps": []}).ran() as ended:
        assert ended.run.state == "failed"
        [error] = ended.failures
        assert error.startswith(
            "Permanent: the job names nothing to read: dumps, api.endpoints, http.seeds"
        )


ADDRESS = {"address": {"geocoder": "photon", "url": "https://geo.example.com"}}
LOCATED = {"extends": "quick", "steps": ["enrich.address"], "features": {"email": False}}


def test_a_provider_that_answers_html_is_named_with_its_key_and_nothing_is_packaged(
    tmp_path: Path,
) -> None:
    async def login(request: Request) -> RawResponse:
        return answer("<h1>Log in</h1>", headers={"content-type": "text/html"})

    builder = Builder(tmp_path, ADDRESS, LOCATED)
    with builder.ran(login) as ended:
        assert ended.run.state == "failed"
        assert any(
            "the geocoder at https://geo.example.com/api" in error
            and error.endswith(
                "answered with text/html, not with JSON: check address.url of the job"
            )
            for error in ended.failures
        ), ended.failures
        assert any("2 of 2 companies are not finished" in error for error in ended.failures)
    assert not (tmp_path / "out").exists()


def test_a_provider_whose_quota_is_used_up_is_waited_for(tmp_path: Path) -> None:
    asked: list[str] = []

    async def with_quota(request: Request) -> RawResponse:
        asked.append(request.url)
        if len(asked) in (2, 3):
            return answer("", status=429, headers={"retry-after": "600"})
        return answer('{"features": []}', headers={"content-type": "application/json"})

    builder = Builder(tmp_path, ADDRESS, LOCATED)
    with builder.ran(with_quota) as ended:
        assert ended.run.state == "completed"
        assert ended.run.quarantined == 0
    assert len(builder.dataset()) == 2


def test_a_provider_that_wants_to_be_paid_is_not_asked_again_and_again(tmp_path: Path) -> None:
    async def unpaid(request: Request) -> RawResponse:
        return answer("", status=402)

    with Builder(tmp_path, ADDRESS, LOCATED).ran(unpaid) as ended:
        assert ended.run.state == "failed"
        assert len([url for url in ended.requests if "/api" in url]) == 2


def test_a_dns_that_is_not_there_leaves_its_companies_in_quarantine_and_no_package(
    tmp_path: Path,
) -> None:
    async def away(request: Request) -> RawResponse:
        if "dns.example.com" in request.url:
            raise FetchError("timed out", request.url)
        return answer("", status=404)

    builder = Builder(tmp_path, {"dns": {"url": "https://dns.example.com/resolve"}}, {
        "extends": "quick", "steps": ["enrich.domain"],
    })  # fmt: skip
    with builder.ran(away) as ended:
        assert ended.run.state == "failed"
        assert any("the DNS (dns.url of the job): " in error for error in ended.failures)
        assert any("1 of 2 companies are not finished" in error for error in ended.failures)


def test_a_package_may_lack_what_the_job_allows(tmp_path: Path) -> None:
    async def half(request: Request) -> RawResponse:
        is_json = "Acme" in request.url or "12%20Main" in request.url
        return answer('{"features": []}' if is_json else "<p>no</p>")

    params = {**ADDRESS, "output": {"max_missing_pct": 50}}
    builder = Builder(tmp_path, params, LOCATED)
    with builder.ran(half) as ended:
        assert ended.run.state == "partial"
    assert names(builder.dataset()) == {"Acme Tools LLC"}


def test_a_missing_key_of_maps_is_said_before_anybody_is_asked(tmp_path: Path) -> None:
    profile = {"extends": "quick", "steps": ["enrich.google_maps"]}
    with Builder(tmp_path, {}, profile).ran() as ended:
        assert ended.run.state == "failed"
        assert any(
            error.startswith("AuthFailed: maps.key is missing: set a variable")
            for error in ended.failures
        )
        assert ended.requests == []


def test_a_missing_extra_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("penstock.builder.")]:
        if name != "penstock.builder.registry":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(PipelineError) as refused:
        function_of(registry.step("normalize.resolve"), registry)
    assert "needs the module 'rapidfuzz'" in refused.value.message
    assert refused.value.hint == "pip install 'penstock[builder]'"


SITE = {
    "serp": {"provider": "index", "url": "hits.jsonl"},
    "address": {},
}
CRAWLED = {
    "extends": "quick",
    "steps": ["http.serp", "crawl.site_async", "enrich.domain", "enrich.site"],
}


def with_index(folder: Path, *hits: dict[str, str]) -> None:
    (folder / "hits.jsonl").write_text("".join(json.dumps(hit) + "\n" for hit in hits))


async def bell(request: Request) -> RawResponse:
    if request.url == "http://www.acme.com/":
        return answer(HOME, headers={"content-type": "text/html"})
    return answer("", status=404)


def test_a_local_index_and_a_site_tell_what_a_list_does_not(tmp_path: Path) -> None:
    hit = {"url": "http://www.acme.com/", "title": "Bell Bakery", "snippet": "Peoria"}
    with_index(tmp_path, hit)
    builder = Builder(tmp_path, SITE, CRAWLED)
    builder.write([{"name": "Bell Bakery", "street": "9 Oak St", "city": "Peoria", "zip": "61602"}])
    with builder.ran(bell) as ended:
        assert ended.run.state == "completed"
    [company] = builder.dataset()
    assert (company["domain"], company["email"]) == ("acme.com", "info@acme.com")


def test_a_site_that_does_not_answer_leaves_its_company_without_it(tmp_path: Path) -> None:
    async def silent(request: Request) -> RawResponse:
        raise FetchError("timed out", request.url)

    with_index(tmp_path)
    builder = Builder(tmp_path, SITE, CRAWLED)
    with builder.ran(silent) as ended:
        assert ended.run.state == "completed"
        assert ended.run.quarantined == 0
    assert {each["name"]: each["domain"] for each in builder.dataset()} == {
        "Acme Tools LLC": None, "Bell Bakery": None,
    }  # fmt: skip


@pytest.mark.parametrize("way", ["robots", "forbidden"])
def test_a_site_that_wants_no_robots_is_not_read_and_stays_its_companys(
    tmp_path: Path, way: str
) -> None:
    async def closed(request: Request) -> RawResponse:
        if request.url.endswith("/robots.txt") and way == "robots":
            return answer("User-agent: *\nDisallow: /")
        return answer("", status=404 if "robots" in request.url else 403)

    with_index(tmp_path)
    builder = Builder(tmp_path, SITE, CRAWLED)
    with builder.ran(closed) as ended:
        assert ended.run.state == "completed"
    assert {each["name"]: each["domain"] for each in builder.dataset()} == {
        "Acme Tools LLC": None, "Bell Bakery": "acme.com",
    }  # fmt: skip


def test_a_guessed_domain_is_asked_for_only_if_the_dns_knows_it(tmp_path: Path) -> None:
    bounds: dict[str, int] = {}

    async def internet(request: Request) -> RawResponse:
        if not request.url.endswith("robots.txt"):
            bounds[request.url.split("/")[2]] = request.max_bytes
        if "dns.example.com" in request.url:
            is_known = "bellbakery.com" in request.url
            rows = [{"type": 1, "data": "192.0.2.1"}] if is_known else []
            return answer(json.dumps({"Status": 0 if is_known else 3, "Answer": rows}))
        if request.url == "http://bellbakery.com/":
            return answer(HOME, headers={"content-type": "text/html"})
        return answer("", status=404)

    with_index(tmp_path)
    dns = {"dns": {"url": "https://dns.example.com/resolve"}, "crawl": {"guess": ["com"]}}
    builder = Builder(tmp_path, {**SITE, **dns}, CRAWLED)
    builder.write([{key: ROWS[1][key] for key in ("name", "street", "city", "zip")}])
    with builder.ran(internet) as ended:
        assert ended.run.state == "completed"
        asked = {url for url in ended.requests if url.startswith("http://")}
        assert not any("bell-bakery.com" in url for url in asked)
    # What a request may bring is reserved of the byte budget, and keeps others waiting.
    assert (bounds["dns.example.com"], bounds["bellbakery.com"]) == (500_000, 2_000_000)
    [company] = builder.dataset()
    assert company["domain"] == "bellbakery.com"


def test_the_key_of_a_provider_is_sent_and_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str | None] = []

    async def maps(request: Request) -> RawResponse:
        sent.append(request.headers.get("X-Goog-Api-Key"))
        if len(sent) == 2:
            return answer("", status=403)
        return answer('{"places": []}', headers={"content-type": "application/json"})

    monkeypatch.setenv("MAPS_KEY", "k3y-of-the-maps")
    maps_keys = {"maps": {"url": "https://maps.example.com", "key": "${MAPS_KEY}"}}
    builder = Builder(tmp_path, maps_keys, {"extends": "quick", "steps": ["enrich.google_maps"]})
    with builder.ran(maps) as ended:
        assert ended.run.quarantined == 2
        assert not any("k3y" in error for error in ended.failures)
    assert "k3y-of-the-maps" in sent
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file.name for file in kept if b"k3y-of-the-maps" in file.read_bytes()] == []


def test_pages_of_seeds_become_rows_also_without_the_browser_that_they_want(tmp_path: Path) -> None:
    page = "https://list.example.com/peoria"
    markup = (
        "<table><tr><th>Name</th><th>City</th><th>Phone</th></tr>"
        "<tr><td>Cole Tiles</td><td>Peoria</td><td>309 555 0133</td></tr></table>"
    )

    async def listing(request: Request) -> RawResponse:
        return answer(markup, headers={"content-type": "text/html"})

    http = {"seeds": [page], "headless": ["https://list.example.com/"]}
    profile = {"extends": "quick", "steps": ["http.static", "parse.html"]}
    builder = Builder(tmp_path, {"http": http}, profile)
    with builder.ran(listing) as ended:
        assert ended.run.state == "completed"
    assert names(builder.dataset()) == {"Acme Tools LLC", "Bell Bakery", "Cole Tiles"}


def test_pages_that_need_a_browser_are_drawn_and_the_others_are_not(tmp_path: Path) -> None:
    script = "document.body.innerHTML = '<table><tr><th>Name<th>City<tr><td>Drawn Tiles<td>Peoria</table>'"

    async def site(request: Request) -> RawResponse:
        if "robots" in request.url:
            return answer("", status=404)
        return answer(
            f"<p>wait</p><script>{script}</script>", headers={"content-type": "text/html"}
        )

    shared = SharedBrowsers()
    drawn, plain = "https://list.example.com/drawn", "https://list.example.com/plain"
    http = {"seeds": [drawn, plain], "headless": [drawn], "wait": "load", "browser": shared.path}
    profile = {"extends": "quick", "steps": ["http.static", "headless.collect", "parse.html"]}
    builder = Builder(tmp_path, {"dumps": [], "http": http}, profile)
    try:
        with builder.ran(site, shared=shared) as ended:
            assert ended.run.state == "completed"
            assert sorted(ended.requests)[:2] == [drawn, plain]
    finally:
        shared.browsers.close()
    assert names(builder.dataset()) == {"Drawn Tiles"}


def test_a_company_that_no_source_has_any_more_leaves_the_dataset_and_becomes_a_tombstone(
    tmp_path: Path,
) -> None:
    builder = Builder(tmp_path, {})
    with builder.ran() as first:
        before = first.records("companies")
    builder.write(ROWS[:1])
    with builder.ran() as second:
        after = second.records("companies")
    [kept] = builder.dataset()
    assert kept["name"] == "Acme Tools LLC"
    assert after[kept["id"]] == before[kept["id"]]
    assert [data for data in after.values() if data.get("deleted")] == [
        {"id": key, "deleted": True} for key in before if key != kept["id"]
    ]


def test_an_incremental_run_asks_for_changes_and_comes_to_the_same_dataset(tmp_path: Path) -> None:
    page = "<table><tr><th>Name<th>City<tr><td>Cole Tiles<td>Peoria</table>"
    known: list[str | None] = []

    async def listing(request: Request) -> RawResponse:
        if "robots" in request.url:
            return answer("", status=404)
        known.append(request.headers.get("If-None-Match"))
        if known[-1]:
            return answer("", status=304)
        return answer(page, headers={"content-type": "text/html", "etag": '"1"'})

    http = {"seeds": ["https://list.example.com/peoria"]}
    profile = {"extends": "quick", "steps": ["http.static", "parse.html"]}
    builder = Builder(tmp_path, {"http": http}, profile)
    with builder.ran(listing):
        whole = builder.dataset()
    with builder.ran(listing, "incremental") as again:
        assert again.run.state == "completed"
    assert known == [None, '"1"']
    assert "Cole Tiles" in names(whole)
    assert builder.dataset() == whole


def test_filters_leave_out_what_speaks_against_them_and_count_it(tmp_path: Path) -> None:
    builder = Builder(tmp_path, {"filters": {"categories": ["bakery"]}})
    builder.write([{**ROWS[0], "category": "tools"}, {**ROWS[1], "category": "Bakery & cafe"}])
    with builder.ran() as ended:
        [about] = ended.records("companies_runs").values()
        assert (about["companies"], about["left_out"]) == (1, 1)
    assert names(builder.dataset()) == {"Bell Bakery"}


def test_codes_of_activity_are_compared_with_codes_and_not_with_words(tmp_path: Path) -> None:
    builder = Builder(tmp_path, {"filters": {"naf_include": ["10.71"]}})
    builder.write(
        [
            {**ROWS[0], "category": "Bakery", "NAF": "10.71C"},
            {**ROWS[1], "category": "Bakery", "NAF": "47.24Z"},
        ]
    )
    with builder.ran() as ended:
        [about] = ended.records("companies_runs").values()
        assert (about["companies"], about["left_out"]) == (1, 1)
    [company] = builder.dataset()
    assert (company["category"], company["activity_code"]) == ("Bakery", "10.71C")
