"""The connector `api` on a server with every kind of paging, credentials and fault."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from penstock.app import Project, new_source
from penstock.errors import ConfigError
from penstock.settings import load_settings
from penstock.store.rows import RunRow
from penstock.testing import RawResponse, Request, ScriptedNetwork, answer
from penstock.testing.connectors import Place, Trial
from tests.connectors.api_server import SECRET, SITE, Server, record, reply

GRAPHQL = {"query": "query($after: String) { shop { orders } }", "variables": {"shop": "north"}}
OAUTH = {"token_url": f"{SITE}/token", "client_id": "me", "client_secret": "${SECRET}"}


class ServedPlace(Place):
    connector = "api"
    about = {"fetch": {"robots": False}, "limits": {"concurrency": 4}}  # noqa: RUF012

    def __init__(self, folder: Path, server: Server, keys: dict[str, Any]) -> None:
        super().__init__(folder)
        self.server, self._keys = server, keys

    def keys(self) -> dict[str, Any]:
        path = self._keys.get("url", "/")
        return {**self._keys, "url": path if "://" in path else f"{SITE}{path}"}

    def put(self, name: str, text: str) -> bool:
        return False

    def remove(self, name: str) -> None: ...

    def key(self, name: str) -> str:
        return name

    def lock(self) -> bool:
        return False

    def page(self, request: Request) -> RawResponse:
        return self.server.respond(request)


def served(folder: Path, server: Server, url: str, **keys: Any) -> Trial:
    return Trial(folder, ServedPlace(folder, server, {"url": url, **keys}))


def failed(trial: Trial, run: RunRow) -> list[tuple[str, str]]:
    """The kind and the error of each job that was quarantined."""
    jobs = [job for job in trial.jobs(run) if job.state == "quarantined"]
    return [(job.kind or "", job.error or "") for job in jobs]


def notes(trial: Trial) -> str:
    with trial.project() as project:
        return "\n".join(event.detail for event in project.connection.journal.events(limit=1000))


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "auto: link": ("/links", {}),
    "auto: next url": ("/next", {}),
    "auto: cursor": ("/cursors", {}),
    "auto: the last record": ("/last", {}),
    "auto: pages": ("/pages", {}),
    "auto: by the address": ("/bare?page=1", {}),
    "auto: graphql": ("/graphql", {"graphql": {**GRAPHQL, "variables": {"shop": "n", "first": 2}}}),
    "page": ("/bare", {"paging": "page"}),
    "page, short": ("/bare", {"paging": {"kind": "page", "size": 2}}),
    "page, not there": ("/missing", {"paging": "page"}),
    "page, clamped": ("/clamped", {"paging": "page"}),
    "offset": ("/capped", {"paging": {"kind": "offset", "size": 100}}),
    "offset, total": (
        "/capped",
        {"paging": {"kind": "offset", "size": 100}, "params": {"total": 1}},
    ),
    "link": ("/links", {"paging": "link"}),
    "next": ("/next", {"paging": {"kind": "next", "next": "_links.next.href"}}),
    "cursor": ("/cursors", {"paging": {"kind": "cursor", "next": "meta.next_cursor"}}),
    "post": (
        "/search",
        {
            "body": {"text": "x"},
            "paging": {"kind": "cursor", "param": "page.after", "next": "next_cursor"},
        },
    ),
    "relay": (
        "/graphql",
        {
            "graphql": GRAPHQL,
            "records": "data.shop.orders.edges[*].node",
            "paging": {"kind": "relay", "size": 3},
        },
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_paging_gives_every_record_and_then_only_what_changed(
    name: str, tmp_path: Path
) -> None:
    url, keys = KINDS[name]
    server = Server()
    trial = served(tmp_path, server, url, **keys)
    assert trial.run().state == "completed"
    assert {key: each["data"] for key, each in trial.documents().items()} == {
        str(each["id"]): each for each in server.records
    }
    requests = len(server.seen)
    # A change on the last page alone is found, although the pages before it are as they were.
    server.records[-1]["name"] = "another"
    again = trial.run()
    versions = {key: version for key, (_, version) in trial.records().items()}
    assert {key for key, version in versions.items() if version > 1} == {"7"}
    # Behind the last page of that one server is the last page again.
    assert len(trial.items_read(again)) == (2 if name == "page, clamped" else 1)
    assert again.state == "completed"
    assert len(server.seen) == 2 * requests


def test_pages_of_a_known_total_are_read_side_by_side(tmp_path: Path) -> None:
    trial = served(tmp_path, Server(records=40), "/pages")
    jobs = {job.key: job.id for job in trial.jobs(trial.run()) if job.stage == "read"}
    with trial.project() as project:
        parents = project.connection.jobs.parents(list(jobs.values()))
    first = jobs.pop("page 1")
    assert len(jobs) == 19
    assert {parents[job] for job in jobs.values()} == {first}


@pytest.mark.parametrize(
    ("url", "paging", "problem", "requests"),
    [
        ("/ignoring", "page", "page 2 has the same records as one before it: does the API know", 2),
        (
            "/circle",
            "auto",
            "the pages go in a circle: the next one after page 5 was read before",
            5,
        ),
    ],
)
def test_pages_without_end_are_recognised_and_what_was_read_is_kept(
    tmp_path: Path, url: str, paging: str, problem: str, requests: int
) -> None:
    server = Server()
    trial = served(tmp_path, server, url, paging=paging)
    run = trial.run()
    [(kind, error)] = failed(trial, run)
    assert (run.state, kind, len(server.seen)) == ("partial", "data", requests)
    assert problem in error
    assert len(trial.documents()) >= 2


def test_the_pages_of_a_run_are_bounded_and_it_says_so(tmp_path: Path) -> None:
    server = Server(records=20)
    trial = served(tmp_path, server, "/cursors", paging={"max_pages": 3})
    assert trial.run().state == "completed"
    assert (len(server.seen), len(trial.documents())) == (3, 6)
    assert "there are more pages than paging.max_pages, 3" in notes(trial)


@pytest.mark.torture
def test_a_chain_of_ten_thousand_pages_takes_time_in_proportion_to_its_length(
    tmp_path: Path,
) -> None:
    seconds = []
    for pages in (1_000, 10_000):
        folder = tmp_path / str(pages)
        folder.mkdir()
        trial = served(folder, Server(records=2 * pages), "/cursors")
        began = process_time()
        assert trial.run().state == "completed"
        seconds.append(process_time() - began)
        assert len(trial.documents()) == 2 * pages
    assert seconds[1] < 20 * seconds[0]


SINCE = {"param": "since", "field": "updated_at", "overlap": "1d"}


def test_an_incremental_run_asks_for_changes_since_the_last_one_less_the_overlap(
    tmp_path: Path,
) -> None:
    server = Server()
    trial = served(tmp_path, server, "/changes", since=SINCE, paging={"kind": "page", "size": 2})
    trial.run()
    assert "since" not in server.asked("/changes")[0]
    server.seen.clear()
    server.records[0] |= {"name": "changed", "updated_at": "2026-11-20T10:00:00Z"}
    trial.run()
    assert server.asked("/changes")[0]["since"] == "2026-11-07T10:00:00Z"
    # The one within the overlap comes again, and is recognised.
    assert {key: version for key, (_, version) in trial.records().items()} == {
        **{str(number): 1 for number in range(2, 8)},
        "1": 2,
    }
    server.seen.clear()
    trial.run("full")
    assert "since" not in server.asked("/changes")[0]


def test_the_checkpoint_never_passes_a_page_that_failed_nor_the_start_of_the_run(
    tmp_path: Path,
) -> None:
    server = Server()
    trial = served(tmp_path, server, "/changes", since=SINCE, paging={"kind": "page", "size": 2})
    server.on_request = lambda request: server.faults.update(
        {"/changes": [answer("<html><body>oops", 200)] if "page=3" in request.url else []}
    )
    assert trial.run().state == "partial"
    assert cursors(trial) == {}
    server.on_request = lambda _: None
    server.faults.clear()

    # Records that were added while pages were read, and one from the future.
    later = iter([[record(50)], [{**record(51), "updated_at": "2999-01-01T00:00:00Z"}]])
    server.on_request = lambda _: server.records.extend(next(later, []))
    started_at = trial.clock.now()
    assert trial.run().state == "completed"
    assert datetime.fromisoformat(cursors(trial)["since"]).timestamp() <= started_at
    server.on_request = lambda _: None
    trial.run()
    assert {"50", "51"} <= trial.documents().keys()


def cursors(trial: Trial) -> dict[str, Any]:
    with trial.project() as project:
        return {each.partition: each.cursor for each in project.checkpoints.each("place")}


def test_a_token_is_asked_for_once_renewed_when_it_ends_or_is_refused_and_stored_nowhere(
    tmp_path: Path,
) -> None:
    server = Server()
    trial = served(tmp_path, server, "/guarded", auth=OAUTH)
    assert trial.run().state == "completed"
    assert (len(server.tokens), len(trial.documents())) == (1, 7)
    server.bad_tokens.update(server.tokens)

    def refuse_again(request: Request) -> None:
        if "cursor=c4" in request.url:
            server.bad_tokens.add(server.tokens[0])

    server.on_request = refuse_again
    assert trial.run("full").state == "completed"
    assert len(server.tokens) in (2, 3)
    with trial.project() as project:
        assert project.connection.snapshots.at(f"{SITE}/guarded") != []
        assert project.connection.snapshots.at(f"{SITE}/token") == []
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"for-nobody-to-see" not in file.read_bytes(), file
            assert SECRET.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("url", "auth", "problem"),
    [
        ("/guarded", {**OAUTH, "client_secret": "wrong"}, "gives no token to this client"),
        ("/guarded", {"bearer": "wrong-token-of-somebody"}, "status 401"),
        ("/header", {"header": "X-Key", "value": "wrong"}, "status 403"),
    ],
)
def test_refused_credentials_are_an_error_of_their_own_kind(
    tmp_path: Path, url: str, auth: dict[str, str], problem: str
) -> None:
    trial = served(tmp_path, Server(), url, auth=auth)
    run = trial.run()
    [(kind, error)] = failed(trial, run)
    assert kind == "auth"
    assert problem in error


def test_credentials_go_by_header_basic_or_query_to_their_own_origin_alone(tmp_path: Path) -> None:
    for number, (url, auth) in enumerate(
        (
            ("/header", {"header": "X-Key", "value": "${SECRET}"}),
            ("/basic", {"user": "me", "password": "${SECRET}"}),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert served(folder, Server(), url, auth=auth).run().state == "completed"
    for number, auth in enumerate(({"bearer": "${SECRET}"}, {"query": "k", "value": "${SECRET}"})):
        folder = tmp_path / f"elsewhere-{number}"
        folder.mkdir()
        server = Server()
        served(folder, server, "/elsewhere", auth=auth).run()
        [own, other] = server.seen
        assert SECRET in f"{own.url} {own.headers}"
        assert other.url == "https://other.example/next"
        assert SECRET not in f"{other.url} {other.headers}"


JSON = {"Content-Type": "application/json"}
WRONG: dict[str, tuple[RawResponse, dict[str, Any], str, str]] = {
    "html": (answer("<!doctype html><title>x"), {}, "data", "an HTML page, not with JSON"),
    "no json": (answer("{'a': 1}", 200, JSON), {}, "data", "the answer is not JSON"),
    "an error": (
        reply({"error": {"message": "no such table"}}), {}, "data", "it says: no such table"),
    "another path": (
        reply({"items": []}), {"records": "data.items"}, "data", "no $.data.items: it has items"),
    "several lists": (
        reply({"a": [{"id": 1}], "b": [{"id": 2}]}), {}, "data", "several lists: $.a, $.b"),
    "no list": (reply({"a": 1}), {}, "data", "no list of records"),
    "an object": (reply({"a": {"x": {"id": 1}}}), {"records": "a"}, "data", "write records: $.a.*"),
    "no object": (reply([{"id": 1}, 7]), {}, "data", "record 2 of $ is a number, not an object"),
    "no key": (reply([{"sku": 1}]), {}, "data", "record 1 of $ has no id, which makes its key"),
    "a key twice": (
        reply([{"id": 1, "a": 1}, {"id": 1, "a": 2}]), {}, "data", "records of a page have the key '1'"),
    "no times": (
        reply([{"id": 1}]), {"since": SINCE}, "data", "no record of the page has a time of its last"),
    "graphql": (
        reply({"errors": [{"message": "no field x"}], "data": None}), {"graphql": GRAPHQL}, "data",
        "the API answered with an error: no field x"),
    "graphql, refused": (
        reply({"errors": [{"message": "who?", "extensions": {"code": "UNAUTHENTICATED"}}]}),
        {"graphql": GRAPHQL}, "auth", "the API answered with an error: who?"),
    "no pageInfo": (
        reply({"data": {"nodes": [{"id": 1}]}}), {"graphql": GRAPHQL, "paging": "relay"}, "data",
        "no $.data.pageInfo: ask for pageInfo"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_one_clear_line_of_the_right_kind(name: str, tmp_path: Path) -> None:
    found, keys, kind, problem = WRONG[name]
    server = Server()
    server.faults["/x"] = [found]
    trial = served(tmp_path, server, "/x", **keys)
    run = trial.run()
    [(said, error)] = failed(trial, run)
    assert (said, len(server.seen)) == (kind, 1)
    assert problem in error
    assert "\n" not in error


def test_a_limit_that_is_used_up_is_waited_for_and_costs_no_try(tmp_path: Path) -> None:
    server = Server()
    now = served(tmp_path, server, "/cursors").clock.now()
    server.faults["/cursors"] = [
        reply({}, 429, X_RateLimit_Remaining="0", X_RateLimit_Reset=str(int(now) + 90)),
        reply({"data": server.part(0), "meta": {"next_cursor": "c2"}}, RateLimit='"a";r=0;t=40'),
    ]
    trial = served(tmp_path, server, "/cursors")
    run = trial.run()
    first, second, third = [at for at, _ in trial.place.requests[:3]]
    assert (run.state, len(trial.documents())) == ("completed", 7)
    assert (second - first >= 89, third - second >= 40) == (True, True)
    assert {job.tries for job in trial.jobs(run)} == {0}


def test_records_that_say_so_become_tombstones(tmp_path: Path) -> None:
    server = Server()
    trial = served(tmp_path, server, "/links", deleted="archived", key=["name", "id"])
    trial.run()
    server.records[2]["archived"] = True
    trial.run()
    assert trial.records()["Item 3/3"] == ({"key": "Item 3/3", "deleted": True}, 2)
    assert len(trial.documents()) == 6


def run_for_real(folder: Path, sources: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Run sources by the workers of `penstock run`; answers the documents of each."""
    about = {"connector": "api", "fetch": {"allow_private": True, "robots": False}}
    text = json.dumps({"sources": {name: {**about, **keys} for name, keys in sources.items()}})
    (folder / "penstock.yaml").write_text(text)
    with Project.open(folder) as project:
        runs = [project.run(name) for name in sources]
        project.runs.finish(runs, tell=lambda _: None)
        assert {project.require_run(run).state for run in runs} == {"completed"}
        return {
            name: {
                row.key: row.data["data"] for row in project.connection.records.of(name, "", 100)
            }
            for name in sources
        }


def test_nothing_is_missed_where_connections_break_and_servers_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    server = Server(records=9)
    paths = ("links", "next", "cursors", "pages", "last")
    server.faults = {f"/{path}": [reply({}, 500)] for path in paths}
    with server.on_loopback(drops=1) as origin:
        sources = {
            path: {
                "url": f"{origin}/{path}",
                "auth": {"query": "k", "value": "${SECRET}"},
                "retry": "fast",
            }
            for path in paths
        }
        found = run_for_real(tmp_path, sources)
    wanted = {str(each["id"]): each for each in server.records}
    assert found == dict.fromkeys(paths, wanted)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("records: $.a..b", "records: is no JSONPath: at character 6 of '$.a..b', descendants"),
        ("key: items[*].id", "key: $.items[*].id can select several values; name one field"),
        ("paging: pages", "paging: must not be 'pages', did you mean 'page'?"),
        ("paging: {kind: link, size: 2, total: a}", "paging.total: belongs to paging of kind page"),
        (
            "auth: {bearer: a, user: b}",
            "auth: needs one of bearer, header, query, user and token_url",
        ),
        ("auth: {query: a}", "auth.value: is missing; query needs it"),
        ("method: GET\n    body: {}", "method: can't be GET beside body"),
        ("since: {param: a}", "since.field: is missing"),
    ],
)
def test_a_mistake_in_the_keys_is_told_with_its_place(
    tmp_path: Path, keys: str, problem: str
) -> None:
    text = f"sources:\n  a:\n    connector: api\n    url: https://a.example/\n    {keys}\n"
    (tmp_path / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"sources.a.{problem}")):
        load_settings(tmp_path)


@pytest.mark.parametrize(
    ("path", "keys", "why"),
    [
        ("/links", {}, "2 records at $; paging: the Link header"),
        (
            "/cursors",
            {},
            "2 records at $.data; paging: the cursor at $.meta.next_cursor, sent as cursor",
        ),
        ("/next", {}, "2 records at $.items; paging: the URL at $._links.next.href"),
    ],
)
def test_add_recognises_an_api_and_shows_a_sample(
    tmp_path: Path, path: str, keys: dict[str, Any], why: str
) -> None:
    server = Server()

    async def respond(request: Request) -> RawResponse:
        return server.respond(request)

    network = ScriptedNetwork(respond)
    proposal = new_source.propose(tmp_path, new_source.Wish(f"{SITE}{path}"), network)
    assert (proposal.connector, proposal.why) == ("api", f"a JSON API: {why}")
    added = new_source.add(tmp_path, proposal, network=network)
    assert added.keys == {"connector": "api", "url": f"{SITE}{path}", **keys}
    # The sample goes on to the second page.
    assert [each.title for each in added.samples] == ["Item 1", "Item 2", "Item 3"]
