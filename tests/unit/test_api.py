"""The HTTP API as a whole: all of the application is in it, and its document says what it does."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from penstock import Project
from penstock.app.nouns import Nouns
from penstock.app.verbs.acts import ACTS, Act
from penstock.app.verbs.parameters import noun_class
from penstock.app.verbs.reads import READS, Read
from penstock.web import api, streams
from penstock.web.openapi import document
from penstock.web.problem_response import PREFIX
from penstock.web.streams import STREAMS
from tests.unit.test_web import Site, visit

FILE = "sources: {a: {pipeline: 'x:y', schedule: {signal: go}}, b.com/shop: {pipeline: 'x:y'}}\n"

# Verbs that are not called over HTTP, and why.
NOT_SERVED = {
    "now": "every answer has a Date",
    "breakers.key": "spells a name for the command line",
    "budgets.are_of_runs": "decides what the command line prints",
    "drain": "works in the calling process",
    "drains.look": "runs.stages has the counts",
    "drains.perform": "works in the calling process",
    "drains.perform_run": "works in the calling process",
    "drains.plan": "loads the pipeline's code in the server's process",
    "drains.stages": "runs.stages has the counts",
    "exports.check_pg_cron": "is asked by whoever installs the script, at a shell",
    "exports.deploy": "takes a path, and is about the host where it is called",
    "exports.metabase": "sets up another program once, at a shell",
    "exports.pg_cron": "is installed by whoever has the rights in the database, at a shell",
    "exports.supabase": "is installed by whoever has the rights in the database, at a shell",
    "golden.check": "performs the code of the folder, in the calling process",
    "golden.list": "is about files beside the code, which change with it",
    "golden.record": "writes files beside the code",
    "logs.follow": "logs.list with a cursor; the journal's stream says when there is more",
    "metrics.text": "is at /metrics, where Prometheus looks for it",
    "metrics.write": "takes a path",
    "pages.read": "the body of a page is a download of the dashboard, never a document of this origin",
    "pages.try_": "fetches a URL, in the server's process",
    "prove": "starts processes of its own for minutes",
    "quarantine.nothing": "words of the command line",
    "records.export": "takes a path",
    "records.to_arrow": "answers with a table in memory",
    "records.to_pandas": "answers with a table in memory",
    "records.to_polars": "answers with a table in memory",
    "records.require_collection": "records.collections has it",
    "replays.changes": "replays.diff has the counts and the first records",
    "releases.checkout": "takes a path, and writes files of the project",
    "runs.finish": "works in the calling process",
    "runs.prepare": "is for whoever drains the run, with the project opened",
    "runs.perform": "works in the calling process",
    "service.holder": "about the calling process",
    "service.schedule": "works in the calling process",
    "service.up": "works in the calling process",
    "service.work": "works in the calling process",
    "signals.trigger": "has the trigger's token",
    "sources.probe": "goes out to the place of a source, in the server's process",
    "sql.query": "reads whatever the user of the database may, private sources too; at a shell",
    "sql.perform": "the leader does it every second; a command does it where nobody leads",
    "store.backup": "takes a path",
    "store.copy": "takes an address of a database, with its password",
    "store.restore": "takes a path, and replaces the file that the server reads",
    "tokens.create": "is done in a shell: no answer has the text of a token",
    "tokens.find": "takes the text of a token",
    "tokens.get": "tokens.list has it",
    "tokens.note_refused": "notes what the server itself has refused",
    "tokens.note_used": "notes what the server itself has seen",
}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "penstock.yaml").write_text(FILE)
    with Project.open(tmp_path) as found:
        yield found


def verbs() -> Iterator[str]:
    """Every public verb of a project. `each…` goes through the pages of a list, `__call__` is an old name."""
    for name, found in vars(Nouns).items():
        if isinstance(found, cached_property):
            for verb, _ in inspect.getmembers(noun_class(name), inspect.isfunction):
                if not verb.startswith(("_", "each")):
                    yield f"{name}.{verb}"
        elif inspect.isfunction(found) and not name.startswith("_"):
            yield name


def test_every_verb_of_the_application_is_served_or_has_a_reason_not_to_be() -> None:
    found, served = set(verbs()), {*ACTS, *READS, *STREAMS}
    assert found - served - set(NOT_SERVED) == set()
    assert set(NOT_SERVED) - (found - served) == set()
    assert served - found == {"progress"}


def test_no_parameter_of_a_request_is_a_path_a_function_or_a_change_of_the_settings() -> None:
    tables: list[Act | Read] = [*ACTS.values(), *READS.values()]
    for each in tables:
        taken = {*each.takes, *each.path_names}
        assert not taken & {"file", "anchor", "env_file", "to_store", "changes", "assume"}, (
            each.name
        )
        assert not [name for name in taken if name.startswith("on_")], each.name


def shown_paths() -> set[tuple[str, str]]:
    paths = document("penstock-1")["paths"]
    return {(path, method.upper()) for path, methods in paths.items() for method in methods}


def test_openapi_document_is_valid_and_has_every_route_of_the_api() -> None:
    found = json.loads(json.dumps(document("penstock-1")))
    jsonschema_rs.Draft202012Validator(OPENAPI_31).validate(found)
    for schema in found["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": found["jsonSchemaDialect"], **schema})
    calls = api.calls_by_path().items()
    served = {(PREFIX + path, method) for path, methods in calls for method in methods}
    assert shown_paths() == served | {(route.path, "GET") for route in streams.routes()}
    assert {path for path, _ in served} == {route.path for route in api.routes()}
    operations = [each for methods in found["paths"].values() for each in methods.values()]
    names = [each["operationId"] for each in operations]
    assert len(names) == len(set(names))
    known = found["components"]["schemas"]
    refs = set(re.findall(r"#/components/schemas/([^\"]+)", json.dumps(found)))
    assert refs - set(known) == set()
    assert [name for name in known if name.startswith("penstock")] == []
    for each in operations:
        assert each["x-penstock-role"] in ("viewer", "operator", "admin")
        assert each["summary"]
        assert "Hidden" not in json.dumps(each)


def test_reference_page_reads_without_javascript_and_loads_nothing_from_outside(
    project: Project,
) -> None:
    async def steps(at: Site) -> None:
        assert (await at.ask("GET", "/api/openapi.json")).status == 401
        await at.log_in()
        page = await at.ask("GET", "/api", headers={"Accept": "text/html"})
        assert page.status == 200
        for name in (*ACTS, *READS, *STREAMS):
            assert f'id="{name.rstrip("_")}"' in page.text
        assert re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", page.text) == []
        assert re.findall(r'(?:src|href)="(?:https?:)?//', page.text) == []
        anchors = set(re.findall(r'href="#([^"]+)"', page.text))
        assert anchors - set(re.findall(r'id="([^"]+)"', page.text)) == set()
        found = await at.ask("GET", "/api/openapi.json")
        assert found.json["openapi"] == "3.1.0"
        cookie = found.json["components"]["securitySchemes"]["session"]["name"]
        assert cookie == f"penstock-{at.port}"
        again = await at.ask(
            "GET", "/api/openapi.json", headers={"If-None-Match": found.headers["Etag"]}
        )
        assert again.status == 304

    visit(project, steps)


def test_unknown_ids_and_paths_are_problems_with_a_code_and_what_is_near(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        for path, code in (
            ("/api/v1/runs/77", "no_run"),
            ("/api/v1/jobs/77", "no_job"),
            ("/api/v1/sources/b.com%2Fshap", "no_source"),
            ("/api/v1/records/products", "no_collection"),
            ("/api/v1/snapshots/77", "no_snapshot"),
            ("/api/v1/alerts/77", "no_alert"),
            ("/api/v1/runbooks/source-brake", "no_runbook"),
            ("/api/v1/figures/nothing/series", "no_measure"),
            ("/api/v1/nothing", "not_found"),
            ("/api/v1/runs/first", "not_found"),
        ):
            answer = await at.ask("GET", path)
            assert (answer.status, answer.json.get("code")) == (404, code), (path, answer.text)
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json["detail"], path
        near = await at.ask("GET", "/api/v1/sources/b.com%2Fshap")
        assert "b.com/shop" in near.json["hint"]
        near = await at.ask("GET", "/api/v1/runbooks/source-brake")
        assert "source-broke" in near.json["hint"]
        for path, hint in (
            ("/api/v1/runs/77", "GET /api/v1/runs"),
            ("/api/v1/nothing", "the page /api lists every path"),
        ):
            assert (await at.ask("GET", path)).json["hint"] == hint
        given = {"Origin": f"http://127.0.0.1:{at.port}", "X-CSRF-Token": at.csrf}
        wrong = await at.ask("PUT", "/api/v1/runs", headers=given)
        assert (wrong.status, wrong.json["code"]) == (405, "method_not_allowed")
        assert set(wrong.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}
        wrong = await at.ask("GET", "/api/v1/quarantine/discard")
        assert (wrong.status, wrong.headers["Allow"]) == (405, "POST")
        long = await at.ask("GET", "/api/v1/jobs?states=" + "x" * 200_000)
        assert (long.status, long.json["code"]) == (400, "bad_request")
        blank = await at.ask(
            "POST",
            "/api/v1/holds",
            data=b"\x0c",
            headers={**given, "Content-Type": "application/json"},
        )
        assert (blank.status, blank.json["code"]) == (400, "bad_json")
        null = await at.ask("GET", "/api/v1/jobs?run=null")
        assert (null.status, null.json["code"]) == (422, "bad_parameter")

    visit(project, steps)


def test_audit_is_exported_line_by_line_and_one_long_read_at_a_time(project: Project) -> None:
    project.sources.pause("a", actor="ann", reason="rest")

    async def steps(at: Site) -> None:
        await at.log_in()
        for _ in range(2):
            found = await at.ask("GET", "/api/v1/audit/export")
            assert found.headers["Content-Type"] == "application/x-ndjson"
            lines = [json.loads(line) for line in found.text.splitlines()]
            assert lines[0]["format"] == "penstock-audit-1"
            assert "source.paused" in found.text
        assert (await at.ask("GET", "/api/v1/audit/verification")).json["sound"] is True
        assert (await at.ask("GET", "/api/v1/forecast?days=2")).json["now"]["days"] == 2

    visit(project, steps)
