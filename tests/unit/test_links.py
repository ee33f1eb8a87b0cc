"""Links: one spelling for one address, in scope; and a step that feeds itself crawls a site once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import Project
from penstock.http.links import MOST_LINKS, links_of, normalised
from penstock.http.response import Response
from penstock.testing import RawResponse, Request, ScriptedNetwork, Simulation, VirtualClock

BASE = "https://shop.example/a/b.html"


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("c.html#top", "https://shop.example/a/c.html"),
        ("../x?b=2&a=1", "https://shop.example/x?b=2&a=1"),
        ("//Shop.Example:443/p", "https://shop.example/p"),
        ("https://shop.example", "https://shop.example/"),
        ("https://me:pw@shop.example/x", "https://shop.example/x"),
        ("/p?utm_source=x&id=7&gclid=1", "https://shop.example/p?id=7"),
        (" /p \n", "https://shop.example/p"),
        ("mailto:me@shop.example", None),
        ("javascript:alert(1)", None),
        ("", None),
        ("http://[broken", None),
        ("data:text/html,x", None),
    ],
)
def test_link_has_one_spelling(link: str, url: str | None) -> None:
    assert normalised(link, BASE) == url


def a_page(html: str) -> Response:
    return Response(BASE, BASE, 200, {"content-type": "text/html"}, html.encode(), 0.0)


def test_links_of_a_page_come_once_in_their_order_and_are_bounded() -> None:
    html = '<base href="/in/"><a href="x">1</a><a href="x#2">2</a><a href="/y">3</a><a>4</a>'
    assert links_of(a_page(html)) == ["https://shop.example/in/x", "https://shop.example/y"]
    many = "".join(f'<a href="/{number}">x</a>' for number in range(MOST_LINKS + 100))
    assert len(links_of(a_page(many))) == MOST_LINKS


PIPELINE = """
from penstock import Pipeline

crawl = Pipeline("crawl")


@crawl.step(unit="run")
def start(ctx):
    yield {"url": "https://shop.example/0"}


@crawl.step(after=["start", "pages"], key="url", follow={"depth": DEPTH, "pages": 100})
async def pages(page, ctx):
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=page["url"], data={"links": len(ctx.links(response, everywhere=True))})
    for url in ctx.links(response, without="/private"):
        yield {"url": url}
"""


@pytest.mark.parametrize(("depth", "pages"), [(50, 20), (3, 4)])
def test_step_that_feeds_itself_crawls_each_page_once_within_its_bounds(
    tmp_path: Path, depth: int, pages: int
) -> None:
    asked: list[str] = []

    async def site(request: Request) -> RawResponse:
        """Twenty pages in a ring, with a way out of it."""
        asked.append(request.url)
        number = int(request.url.rpartition("/")[2])
        html = (
            f'<a href="/{(number + 1) % 20}">next</a><a href="/{max(number - 1, 0)}#x">back</a>'
            '<a href="/private/1">no</a><a href="https://evil.example/7">out</a>'
        )
        return RawResponse(200, {"content-type": "text/html"}, html.encode())

    module = f"crawl_itself_{depth}"
    (tmp_path / f"{module}.py").write_text(PIPELINE.replace("DEPTH", str(depth)))
    source = {"pipeline": f"{module}:crawl", "fetch": {"robots": False}}
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"shop.example": source}}))

    with Project.load(tmp_path) as project:
        with Simulation(project, ScriptedNetwork(site), seed=1, clock=VirtualClock()) as simulation:
            run = project.run("shop.example")
            simulation.run()
        state = project.require_run(run).state
        records = list(project.records("page"))

    assert state == "completed"
    assert len(records) == pages
    assert sorted(asked) == sorted({f"https://shop.example/{number}" for number in range(pages)})
    assert all(each.data["links"] == 4 for each in records[1:-1])
