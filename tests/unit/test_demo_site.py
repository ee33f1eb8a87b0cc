"""The demo site does what it says, the same way every time, and the templates can read it."""

from __future__ import annotations

import asyncio
import importlib
import io
import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest
from rich.console import Console

from penstock import Project, Reject
from penstock.app.views.progress import RunReport
from penstock.cli.commands.demo import INGESTED
from penstock.cli.render.progress import LineProgress, Summary, summary_table
from penstock.demo import archive, catalogue, flaky, news
from penstock.demo.folder import CONFIG, MARKER, known_ports, lay_out, template
from penstock.demo.replies import Answer, Drop, Hang, Page, reply_to
from penstock.demo.site import HOSTS, Site
from penstock.errors import Refused, UsageError
from penstock.jobs.retry import RETRY_CLASSES

ORIGIN = "http://site.test"
DOCS = Path(__file__).parents[2] / "docs"
PORTS = {"catalogue": 4001, "news": 4002, "flaky": 4003, "archive": 4004}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as served:
        yield served


def get(
    url: str, timeout_s: float = 5.0, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    async def fetch() -> tuple[int, dict[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, headers=headers) as response,
        ):
            return response.status, dict(response.headers), await response.read()

    return asyncio.run(fetch())


def body_of(page: Page) -> str:
    reply = page[-1]
    assert isinstance(reply, Answer)
    return reply.body.decode()


def test_every_start_serves_the_same_pages() -> None:
    for pages in HOSTS.values():
        assert pages(ORIGIN) == pages(ORIGIN)


def test_each_host_has_an_origin_of_its_own_and_a_robots_txt(site: Site) -> None:
    assert len(set(site.origins.values())) == 4
    for origin in site.origins.values():
        status, headers, body = get(f"{origin}/robots.txt")
        assert (status, body.split(b"\n")[0]) == (200, b"User-agent: *")
        assert headers["Content-Type"].startswith("text/plain")


def test_site_takes_the_ports_it_is_asked_for_and_free_ones_where_they_are_taken(
    site: Site,
) -> None:
    with Site(site.ports) as other:
        assert not set(other.ports.values()) & set(site.ports.values())
        ports = other.ports
    with Site(ports) as again:
        assert again.ports == ports


def test_unknown_page_is_not_found(site: Site) -> None:
    assert get(f"{site.origins['catalogue']}/nothing")[0] == 404


def test_sitemaps_name_every_product_page_once(site: Site) -> None:
    shop = catalogue.pages(ORIGIN)
    parts = body_of(shop["/sitemap-1.xml"]) + body_of(shop["/sitemap-2.xml"])
    listed = re.findall(r"<url><loc>([^<]+)</loc>", parts)
    assert len(listed) == len(set(listed)) == catalogue.PRODUCTS
    assert all(url.removeprefix(ORIGIN) in shop for url in listed)
    assert body_of(shop["/sitemap.xml"]).count("<sitemap>") == 2


def test_three_prices_are_new_on_the_second_day_and_the_sitemap_says_so() -> None:
    before, after = catalogue.pages(ORIGIN), catalogue.pages(ORIGIN, is_second_day=True)
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {"/product/10", "/product/60", "/product/110", "/sitemap-1.xml"}
    assert body_of(after["/sitemap-1.xml"]).count(catalogue.SECOND_DAY) == 3


def test_page_that_the_client_has_is_not_sent_again(site: Site) -> None:
    url = f"{site.origins['catalogue']}/product/1"
    _, headers, body = get(url)
    status, _, again = get(url, headers={"If-None-Match": headers["Etag"]})
    assert (status, again) == (304, b"")
    assert body


def test_archive_is_away_when_its_first_entries_are_asked_for(site: Site) -> None:
    url = f"{site.origins['archive']}/entry/3"
    assert [get(url)[0] for _ in range(3)] == [502, 200, 200]
    assert get(f"{site.origins['archive']}/entry/{archive.ENTRIES}")[0] == 200


def test_feed_names_forty_articles_that_exist() -> None:
    paper = news.pages(ORIGIN)
    feed = body_of(paper["/feed.xml"])
    assert feed.count("<item>") == news.ARTICLES
    assert all(f"<link>{ORIGIN}/articles/{number}</link>" in feed for number in range(1, 41))
    assert all(f"/articles/{number}" in paper for number in range(1, 41))


def test_throttled_page_asks_to_wait_twice_and_then_answers(site: Site) -> None:
    url = f"{site.origins['flaky']}/offer/4"
    replies = [get(url) for _ in range(3)]
    assert [status for status, _, _ in replies] == [429, 429, 200]
    assert replies[0][1]["Retry-After"] == "1"


def test_silent_page_outlasts_the_clients_patience_once(site: Site) -> None:
    url = f"{site.origins['flaky']}/offer/11"
    with pytest.raises(asyncio.TimeoutError):
        get(url, timeout_s=0.2)
    assert get(url)[0] == 200


def test_dropped_page_ends_in_the_middle_once(site: Site) -> None:
    url = f"{site.origins['flaky']}/offer/13"
    with pytest.raises(aiohttp.ClientPayloadError):
        get(url)
    assert get(url)[0] == 200


def test_pages_that_recover_do_so_within_the_tries_of_the_fast_class() -> None:
    neighbour = flaky.pages(ORIGIN)
    for number in flaky.RECOVERS:
        page = neighbour[f"/offer/{number}"]
        last = reply_to(page, RETRY_CLASSES["fast"].tries)
        assert isinstance(last, Answer)
        assert last.status == 200


def test_bad_neighbour_has_every_kind_of_trouble() -> None:
    first = [page[0] for page in flaky.pages(ORIGIN).values()]
    statuses = {reply.status for reply in first if isinstance(reply, Answer)}
    assert statuses == {200, 404, 429, 500, 502, 503}
    assert any(isinstance(reply, Hang) for reply in first)
    assert any(isinstance(reply, Drop) for reply in first)
    assert len(first) == flaky.OFFERS + 2


@pytest.fixture(scope="module")
def project() -> Iterator[dict[str, ModuleType]]:
    """The template pipelines, imported the way a project's modules are: from their folder."""
    names = ["catalogue", "news", "flaky"]
    sys.path.insert(0, str(files("penstock.demo").joinpath("project")))
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.pop(0)
        for name in names:
            sys.modules.pop(name, None)


def test_catalogue_pipeline_reads_every_page_of_the_shop(project: dict[str, ModuleType]) -> None:
    shop = catalogue.pages(ORIGIN)
    parse = project["catalogue"].parse_product
    numbers = range(1, catalogue.PRODUCTS + 1)
    products = [parse(body_of(shop[catalogue.path_of(number)])) for number in numbers]
    assert len({product["sku"] for product in products}) == 220 - len(catalogue.ON_SALE)
    assert products[0] == {
        "sku": "PEN-0001",
        "name": "Brass lamp",
        "brand": "Nordlys",
        "price": "42.05",
        "currency": "EUR",
        "in_stock": True,
    }


def test_catalogue_pipeline_rejects_what_has_no_price(project: dict[str, ModuleType]) -> None:
    product = {"sku": "x", "name": "x", "price": None}
    for price in (None, "0", "0.00"):
        with pytest.raises(Reject, match="no price"):
            project["catalogue"].normalize({**product, "price": price})


def test_catalogue_pipeline_makes_one_product_of_two_ways_to_write_it(
    project: dict[str, ModuleType],
) -> None:
    shop = catalogue.pages(ORIGIN)
    parse, normalize = project["catalogue"].parse_product, project["catalogue"].normalize
    for number in catalogue.ON_SALE:
        here, there = (parse(body_of(shop[catalogue.path_of(n)])) for n in (number, number - 1))
        assert here != there
        assert normalize(here) == normalize(there)


def test_news_pipeline_tells_articles_from_advertisements(project: dict[str, ModuleType]) -> None:
    paper = news.pages(ORIGIN)
    parse = project["news"].parse_article
    articles = {n: parse(body_of(paper[f"/articles/{n}"])) for n in range(1, news.ARTICLES + 1)}
    assert {n for n, article in articles.items() if article["is_sponsored"]} == news.SPONSORED
    assert {n for n, article in articles.items() if not article["text"]} == news.UNWRITTEN
    assert articles[1]["url"] == "https://news.example/articles/1"
    assert articles[1]["author"] == "Jonas Weir"


def test_broken_offers_are_errors_and_not_records(project: dict[str, ModuleType]) -> None:
    neighbour = flaky.pages(ORIGIN)
    rubbish = [n for n, kind in flaky.NEVER_WELL.items() if kind in ("cut JSON", "garbage")]
    for number in rubbish:
        reply = neighbour[f"/offer/{number}"][0]
        assert isinstance(reply, Answer)
        with pytest.raises(ValueError, match=r"JSON|delimiter|Expecting"):
            project["flaky"].parse_product(reply.body.decode("utf-8", "replace"))


def test_demo_folder_is_laid_out_with_the_sites_addresses(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    lay_out(folder, PORTS)
    assert {path.name for path in folder.iterdir()} == {
        MARKER,
        CONFIG,
        "catalogue.py",
        "news.py",
        "flaky.py",
        "archive.py",
        "catalogue_next.py",
        "penstock.next.yaml",
    }
    config = (folder / CONFIG).read_text("utf-8")
    assert "http://127.0.0.1:4001/sitemap.xml" in config
    assert ".invalid" not in config
    assert known_ports(folder) == PORTS


def test_demo_folder_keeps_edited_files_and_follows_the_sites_ports(tmp_path: Path) -> None:
    lay_out(tmp_path, PORTS)
    (tmp_path / "news.py").write_text("# mine\n")
    config = (tmp_path / CONFIG).read_text("utf-8")
    (tmp_path / CONFIG).write_text(config + "# mine too\n")
    (tmp_path / "flaky.py").unlink()

    lay_out(tmp_path, {**PORTS, "catalogue": 4002, "news": 4001})

    assert (tmp_path / "news.py").read_text() == "# mine\n"
    assert (tmp_path / "flaky.py").exists()
    moved = (tmp_path / CONFIG).read_text("utf-8")
    assert moved.endswith("# mine too\n")
    assert "http://127.0.0.1:4002/sitemap.xml" in moved
    assert "http://127.0.0.1:4001/feed.xml" in moved


def test_somebody_elses_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(Refused, match="not empty"):
        known_ports(tmp_path)
    with pytest.raises(Refused):
        lay_out(tmp_path, PORTS)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        known_ports(tmp_path / "demo")


def test_damaged_marker_is_refused_with_a_way_out(tmp_path: Path) -> None:
    lay_out(tmp_path, PORTS)
    (tmp_path / MARKER).write_text("[]")
    with pytest.raises(Refused, match="damaged"):
        known_ports(tmp_path)


def test_first_pipeline_is_twenty_lines_and_stands_in_the_readme() -> None:
    first = dict(template("first"))
    code = [line for line in first["products.py"].splitlines() if line.strip()]
    assert len(code) == 20
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert first["products.py"] in readme


def a_report(source: str, state: str, seconds: float = 1.25, **counts: int) -> RunReport:
    names = (
        *(
            "pages",
            "pages_done",
            "candidates",
            "saved",
            "accepted",
            "inserted",
            "updated",
            "unchanged",
        ),
        *("rejected", "skipped", "retried", "throttled", "quarantined", "waiting"),
    )
    found = {name: counts.get(name, 0) for name in names}
    return RunReport(1, source, "full", state, seconds, found)


def test_summary_says_that_nothing_was_doubled_only_when_nothing_was() -> None:
    again = a_report("shop", "completed", saved=5, unchanged=5)
    changed = a_report("shop", "completed", saved=5, unchanged=4, updated=1)
    five = {"product": 5}
    assert Summary([again], five, five).sentences()[-1] == (
        "Nothing was doubled: each of the 5 saves found its record unchanged, "
        "5 records as before: 5 product."
    )
    assert "1 changed" in Summary([changed], five, five).sentences()[-1]
    assert "1 new record, " in Summary([again], {"product": 4}, five).sentences()[-1]
    assert Summary([again], {}, five).sentences()[-1] == "5 records: 5 product."


def test_summary_names_the_sources_that_did_not_complete() -> None:
    well, bad = a_report("shop", "completed"), a_report("other", "partial", quarantined=2)
    complete, partial, _ = Summary([well, bad], {}, {}).sentences()
    assert complete.startswith("shop: complete")
    assert partial.startswith("other: partial. 2 of its pages")


def test_summary_table_fits_a_terminal_of_eighty_columns() -> None:
    reports = [a_report(name, "completed", pages=10_000) for name in INGESTED]
    console = Console(file=io.StringIO(), width=80)
    console.print(summary_table(reports, Summary(reports, {}, {}).totals))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[0].split() == ["catalogue", "news", "flaky", "in", "all"]
    assert lines[2].split() == ["pages", "10000", "10000", "10000", "30000"]
    assert len(lines) == 14


def test_progress_in_lines_comes_every_two_seconds_and_repeats_nothing() -> None:
    console = Console(file=io.StringIO(), width=80)
    progress = LineProgress(console)
    for seconds, done in ((0.0, 0), (0.1, 1), (1.9, 49), (2.0, 50), (2.1, 51), (9.0, 50)):
        progress.show([a_report("shop", "running", seconds, pages=60, pages_done=done)])
    progress.show([a_report("shop", "partial", 9.1, pages=60, pages_done=60, quarantined=2)])
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "shop: running, 0 of 60 pages",
        "shop: running, 50 of 60 pages",
        "shop: partial, 60 of 60 pages, 2 quarantined",
    ]


MISSPELT = [
    ("penstock.yaml", "schedule: manual", "shedule: manual"),
    ("penstock.yaml", "concurrency: 4", "concurrency: four"),
    ("penstock.yaml", "retry: fast", "retry: quick"),
    ("penstock.yaml", "schedule: manual", "schedule: {every: 6 hours}"),
    ("penstock.yaml", "products:products", "product:products"),
    ("penstock.yaml", "products:products", "products:product"),
    ("products.py", 'after="extract"', 'after="extrct"'),
    ("products.py", "async for url", "async fro url"),
]


@pytest.mark.parametrize(("file", "right", "wrong"), MISSPELT)
def test_what_the_guide_says_of_a_misspelling_is_what_penstock_says(
    file: str, right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in template("first"):
        (tmp_path / name).write_text(text.replace(right, wrong) if name == file else text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "products", raising=False)

    with pytest.raises(UsageError) as raised:
        Project.load(tmp_path)

    monkeypatch.delitem(sys.modules, "products", raising=False)
    guide = (DOCS / "first-pipeline.md").read_text("utf-8")
    [row] = [line for line in guide.splitlines() if line.startswith("| `") and f"{wrong}" in line]
    said = row.split("`")[3]
    assert raised.value.message.endswith(said)
