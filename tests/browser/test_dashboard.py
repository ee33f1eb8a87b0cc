"""The dashboard in a real browser: it is readable, reachable, harmless, and quick to act from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright

from penstock import Project
from tests.browser.chromium import FLAGS
from tests.browser.hostile_strings import CALL, STRINGS
from tests.browser.shop import HOSTILE_SOURCE, fill, served
from tests.postgres.proxy import Proxy
from tests.programs import needed

AXE = (Path(__file__).parent / "vendor" / "axe-4.14.0.min.js").read_text()
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "resultTypes": ["violations"],
    "preload": False,
}
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
KEY = f"007 {STRINGS[7]}"


@dataclass
class Dashboard:
    """A running server on a filled project, and a browser that is logged in."""

    folder: Path
    address: str
    browser: Browser
    session: Any
    # The run that failed in part, one of its jobs, and a job that has fetched a page with its snapshot.
    failed_run: int
    failed_job: int
    page_job: int
    snapshot: int
    alert: int
    backfill: int
    replay: int
    # The one that runs, and the one that came before.
    releases: tuple[str, str]

    def context(self, **options: Any) -> BrowserContext:
        return self.browser.new_context(
            base_url=self.address, storage_state=self.session, **options
        )

    @property
    def pages(self) -> list[str]:
        """Every page, of things that are there."""
        return [
            *("/", "/sources", "/sources/shop", f"/sources/{quote(HOSTILE_SOURCE, safe='')}"),
            "/configuration?source=shop",
            *("/sources/prices", "/sources/broken", "/runs", f"/runs/{self.failed_run}"),
            *(f"/runs/{self.backfill}", f"/runs/{self.replay}", "/events", "/schedules"),
            *(f"/jobs/{self.failed_job}", f"/jobs/{self.page_job}"),
            *(f"/jobs/{self.page_job}/pages/{self.snapshot}", "/records", "/records/product"),
            "/record?" + urlencode({"collection": "product", "key": KEY}),
            *("/alerts", f"/alerts/{self.alert}", "/runbooks", "/audit", "/sites"),
            *("/sites/acme.example/proposals/redesign", "/sites/acme.example/proposals/older"),
            *("/sources/newcomer", "/acts/sources.approve?source=newcomer"),
            "/acts/sites.approve?domain=acme.example&proposal=redesign",
            "/runbooks/source-broke?source=broken",
            *("/quarantine", "/quarantine/jobs", "/workers", "/budgets", "/hooks", "/canaries"),
            *("/releases", *(f"/releases/{each}" for each in self.releases)),
            "/releases/{}/diff?before={}".format(*self.releases),
            *(
                "/acts/releases.rollback?release=" + self.releases[1],
                "/acts/canaries.stop?canary=1",
            ),
            "/search?" + urlencode({"q": "007"}),
            *(f"/acts/runs.retry?run={self.failed_run}", "/acts/quarantine.discard?source=broken"),
            *("/acts/breakers.open?name=shop", "/acts/backfills.start?source=prices"),
            f"/acts/replays.commit?run={self.replay}",
        ]

    @property
    def typed(self) -> list[str]:
        """Addresses into which somebody has put markup: each answers with a page that repeats it as text."""
        text = quote(f"<img src=x onerror={CALL}>", safe="")
        return [
            *(f"/search?q={text}", f"/sources/{text}", f"/runs?source={text}"),
            *(f"/events?kind={text}", f"/records/{text}", f"/runbooks/{text}", f"/acts/{text}"),
            *(f"/releases/{text}", f"/releases/{self.releases[0]}/diff?before={text}"),
            *(f"/record?collection=product&key={text}", f"/quarantine/jobs?cause={text}"),
            *(f"/acts/sources.pause?source={text}&back={text}", f"/alerts?state={text}"),
            f"/acts/runs.retry?run={self.failed_run}&reason={text}",
        ]


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    chromium = needed("chromium")
    folder = tmp_path_factory.mktemp("shop")
    fill(folder)
    with Project.open(folder) as project:
        failed = project.jobs.list(source="broken", states=["quarantined"], limit=1).items[0]
        fetched = project.jobs.list(source="shop", stage="extract", limit=1).items[0]
        snapshot = project.pages.list(fetched.id)[0]
        [alert] = project.alerts.list().items
        runs = {run.kind: run.id for run in project.runs.list().items}
        newest = project.releases.history().items[0]
        assert newest.before is not None
    with served(folder) as (address, link), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=FLAGS)
        first = browser.new_context()
        page = first.new_page()
        page.goto(link)
        page.wait_for_url(f"{address}/")
        found = Dashboard(
            *(folder, address, browser, first.storage_state()),
            *(failed.run_id, failed.id, fetched.id, snapshot.id),
            *(alert.id, runs["backfill"], runs["replay"], (newest.release, newest.before)),
        )
        first.close()
        yield found
        browser.close()


def looked_at(page: Page, path: str) -> int:
    answer = page.goto(path, wait_until="load")
    assert answer is not None
    return answer.status


@pytest.mark.parametrize(("theme", "size"), [("light", DESK), ("dark", PHONE)])
def test_every_page_has_no_serious_finding_of_axe_and_no_error_of_a_script(
    dashboard: Dashboard, theme: Any, size: Any
) -> None:
    context = dashboard.context(color_scheme=theme, viewport=size)
    page, found, said = context.new_page(), [], list[str]()
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text))
    for path in dashboard.pages:
        looked_at(page, path)
        page.evaluate(AXE)
        report = page.evaluate("rules => axe.run(document, rules)", RULES)
        found += [
            (path, each["id"], [node["html"][:120] for node in each["nodes"][:3]])
            for each in report["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= size["width"], f"{path} is wider than the screen"
    context.close()
    assert found == []
    # A fetched page in its frame breaks the policy it is under: that is the point of it.
    assert [each for each in said if "srcdoc" not in each] == []


def test_hostile_strings_are_shown_as_text_on_every_page_and_run_nowhere(
    dashboard: Dashboard,
) -> None:
    context = dashboard.context()
    page, outside, told = context.new_page(), list[str](), list[str]()
    page.on("request", lambda request: outside.append(request.url))

    def dismissed(dialog: Dialog) -> None:
        told.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismissed)
    shown = ""
    records = [f"/records/product?cursor={cursor}" for cursor in cursors(dashboard)]
    long = [text for text in STRINGS if len(text) > 70]  # lists cut them
    keys = [f"{STRINGS.index(text):03d} {text}" for text in long]
    whole = ["/record?" + urlencode({"collection": "product", "key": key}) for key in keys]
    for path in [*dashboard.pages, *dashboard.typed, *records, *whole]:
        looked_at(page, path)
        assert page.evaluate("window.pwned") is None, path
        assert page.locator(MARKUP_FROM_DATA).count() == 0, path
        assert {*page.evaluate(TAGS)} <= OUR_TAGS, path
        shown += page.inner_text("body")
    context.close()
    assert [url for url in outside if not url.startswith((dashboard.address, "about:"))] == []
    assert told == []
    flat = re.sub(r"\s+", " ", shown)
    assert [text for text in STRINGS if re.sub(r"\s+", " ", text) not in flat] == []


# All that templates and charts are made of.
OUR_TAGS = {
    *(
        "a",
        "b",
        "br",
        "button",
        "canvas",
        "code",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
    ),
    *(
        "figure",
        "form",
        "h1",
        "h2",
        "h3",
        "header",
        "i",
        "iframe",
        "input",
        "ins",
        "label",
        "li",
        "ol",
    ),
    *(
        "option",
        "p",
        "polyline",
        "pre",
        "progress",
        "rect",
        "s",
        "section",
        "select",
        "small",
        "span",
        "summary",
        "svg",
    ),
    *("table", "tbody", "td", "text", "th", "thead", "time", "title", "tr", "ul"),
}
TAGS = "[...new Set([...document.querySelectorAll('main *')].map(each => each.localName))]"
# What no template has: an element that hostile text would have to make in order to run.
MARKUP_FROM_DATA = (
    "main script, main style, main object, main embed, main video, main math, main template, body base, "
    "main img, [onerror], [onload], [onclick], [onfocus], [ontoggle], [hx-on\\:click], "
    "a[href^='javascript' i], form[action^='javascript' i], iframe:not([sandbox=''])"
)


def cursors(dashboard: Dashboard) -> list[str]:
    """Of all pages of the list of records but the first."""
    with Project.open(dashboard.folder) as project:
        found, cursor = [], project.records.list("product", limit=50).next
        while cursor is not None:
            found.append(cursor)
            cursor = project.records.list("product", limit=50, cursor=cursor).next
    return found


def test_a_failed_run_is_recovered_in_at_most_three_clicks_from_the_overview(
    dashboard: Dashboard,
) -> None:
    context = dashboard.context(viewport=PHONE)
    page = context.new_page()
    looked_at(page, "/")
    clicks = 0
    page.get_by_role("link", name="Retry failed").first.click()
    clicks += 1
    assert "penstock retry" in page.inner_text("main")
    assert "15 jobs" in page.inner_text("main")
    page.keyboard.type("the parser is mended")  # the field has the focus
    page.get_by_role("button", name="Retry failed only").click()
    clicks += 1
    page.get_by_role("status").wait_for()
    context.close()
    with Project.open(dashboard.folder) as project:
        run = project.runs.get(dashboard.failed_run)
        [event] = project.journal.list(run=run.id, kind="run.reopened", limit=1).items
        assert (run.quarantined, run.open_jobs) == (0, 15)
        assert "the parser is mended" in event.detail
    assert clicks <= 3


def test_every_page_reads_without_javascript(dashboard: Dashboard) -> None:
    context = dashboard.context(java_script_enabled=False)
    page = context.new_page()
    for path in dashboard.pages:
        assert looked_at(page, path) == 200, path
        assert page.locator("h1").count() == 1, path
        assert len(page.inner_text("main")) > 40, path
    looked_at(page, "/")
    assert page.locator("svg.plot rect").count() > 0
    context.close()


def test_what_is_unknown_gets_a_page_that_says_where_to_look(dashboard: Dashboard) -> None:
    context = dashboard.context(java_script_enabled=False)
    page = context.new_page()
    for path, place in (
        ("/runs/999999", "/runs"),
        ("/jobs/999999", "/runs"),
        ("/sources/nobody", "/sources"),
        ("/records/nothing", "/records"),
        ("/record?collection=product&key=nothing", "/records"),
        ("/alerts/999999", "/alerts"),
        ("/runbooks/nothing", "/runbooks"),
        ("/nothing", "/"),
    ):
        assert looked_at(page, path) == 404, path
        assert "mistyped" in page.inner_text("main"), path
        assert page.locator(f"main a[href='{place}']").count() == 1, path
    context.close()


def test_a_dead_database_is_said_to_be_so_and_the_page_recovers_alone(
    dashboard: Dashboard, tmp_path: Path, schema_database: str, proxy: Proxy
) -> None:
    settings = {"store": proxy.through(schema_database), "sources": {"a": {"pipeline": "x:y"}}}
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with served(tmp_path) as (address, link):
        page = dashboard.browser.new_page()
        page.goto(link)
        page.wait_for_url(f"{address}/")
        proxy.refuse()
        proxy.cut()
        answer = page.goto(f"{address}/runs")
        assert answer is not None
        assert answer.status == 503
        assert "can't reach its database" in page.inner_text("main")
        proxy.accept()
        page.get_by_role("heading", name="Runs").wait_for()
        page.close()


def test_a_page_shows_what_has_happened_since_without_being_loaded_again(
    dashboard: Dashboard,
) -> None:
    context = dashboard.context()
    page = context.new_page()
    with page.expect_response("**/progress/stream"):
        looked_at(page, "/sources/prices")
    page.evaluate("window.isTheSame = true")
    with Project.open(dashboard.folder) as project:
        project.sources.pause("prices", reason="somebody else paused it")
        page.get_by_role("link", name="Resume").first.wait_for()
        project.sources.resume("prices")
    assert page.evaluate("window.isTheSame")
    context.close()


def test_the_keyboard_alone_reaches_search_pages_and_acts(dashboard: Dashboard) -> None:
    context = dashboard.context()
    page = context.new_page()
    looked_at(page, "/")
    page.keyboard.press("/")
    page.keyboard.type("shop")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=shop")
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/quarantine")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    context.close()


def test_a_snapshot_is_never_a_document_of_the_dashboards_origin(dashboard: Dashboard) -> None:
    context = dashboard.context()
    page = context.new_page()
    looked_at(page, f"/jobs/{dashboard.page_job}/pages/{dashboard.snapshot}")
    frame = page.locator("iframe.page")
    assert frame.get_attribute("sandbox") == ""
    assert frame.get_attribute("src") is None
    answer = context.request.get(f"/snapshots/{dashboard.snapshot}")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert answer.headers["content-type"] == "application/octet-stream"
    context.close()


def test_an_act_without_a_reason_changes_nothing_and_an_undo_is_offered_after_it(
    dashboard: Dashboard,
) -> None:
    context = dashboard.context()
    page = context.new_page()
    looked_at(page, "/sources/shop")
    page.get_by_role("link", name="Pause").click()
    page.locator("form[method=post]").evaluate("form => { form.noValidate = true; }")
    page.get_by_role("button", name="Pause").click()
    assert "Say why" in page.inner_text("[role=alert]")
    page.fill("#reason", "maintenance")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("link", name="Undo: Resume").click()
    page.fill("#reason", "done")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("status").wait_for()
    context.close()
    with Project.open(dashboard.folder) as project:
        assert project.sources.get("shop").paused_at is None
        acts = project.journal.list(source="shop", kind="source", limit=2).items
        assert ["maintenance" in acts[1].detail, "done" in acts[0].detail] == [True, True]
