"""What a step may ask of `ctx.fetch`: every option is known, and what is not there may be skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PipelineError
from penstock.pipeline.context import Context
from penstock.pipeline.fetch_options import FetchOptions
from penstock.store.entries import EntryFilter
from tests.unit.site import PIPELINES, Shop, Site

URL = "https://shop.example/search?q=1#top"


@pytest.mark.parametrize(
    ("options", "url", "about"),
    [
        ({}, URL, {}),
        ({"method": "get"}, URL, {}),
        (
            {"params": {"page": 2, "tag": ["a b", "c"], "all": True, "none": None}},
            "https://shop.example/search?q=1&page=2&tag=a+b&tag=c&all=true#top",
            {},
        ),
        (
            {"json": {"a": [1]}},
            URL,
            {
                "method": "POST",
                "body": b'{"a":[1]}',
                "headers": {"Content-Type": "application/json"},
            },
        ),
        (
            {"data": {"user": "é"}, "method": "put", "headers": {"content-type": "x/y"}},
            URL,
            {"method": "PUT", "body": b"user=%C3%A9", "headers": {"content-type": "x/y"}},
        ),
        (
            {"body": "text", "timeout": "2m"},
            URL,
            {"method": "POST", "body": b"text", "timeout_s": 120.0},
        ),
        ({"timeout": 1.5, "conditional": True}, URL, {"timeout_s": 1.5, "conditional": True}),
        ({"max_bytes": 5}, URL, {"max_bytes": 5}),
    ],
)
def test_options_make_the_request_they_say(
    options: dict[str, Any], url: str, about: dict[str, Any]
) -> None:
    assert FetchOptions(**options).request(URL) == (url, about)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"method": "GETT"}, "knows no method 'GETT'"),
        ({"json": {}, "body": b""}, "takes one of json, data and body"),
        ({"json": object()}, "json is not JSON"),
        ({"timeout": "soon"}, "timeout in seconds"),
        ({"timeout": 0}, "timeout in seconds"),
        ({"max_bytes": 0}, "max_bytes as a whole number"),
        ({"max_bytes": "1MB"}, "max_bytes as a whole number"),
        ({"params": {"a": {}}}, "take text, numbers and lists"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_in_words(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(PipelineError, match=told):
        FetchOptions(**options).request(URL)


def test_a_misspelt_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="metod"):
        Context.fetch(None, URL, metod="POST")  # type: ignore[arg-type,call-arg]
    with pytest.raises(PipelineError, match="missing must be fail or skip"):
        FetchOptions(missing="skipp").skips("fail")  # type: ignore[arg-type]


def a_shop(folder: Path, **source: Any) -> Shop:
    """Three pages of which one is gone and one was never there."""
    site = Site()
    site.page("/a", "here")
    site.page("/gone", "", status=410)
    site.page("/never", "", status=404)
    site.page("/refused", "", status=403)
    shop = Shop(folder, site)
    shop.write(**source)
    return shop


def test_pages_that_are_not_there_fail_unless_the_source_skips_them(tmp_path: Path) -> None:
    run = a_shop(tmp_path / "fail").run()
    assert (run.state, run.quarantined, run.skipped) == ("partial", 3, 0)
    shop = a_shop(tmp_path / "skip", fetch={"missing": "skip"})
    run = shop.run()
    assert (run.state, run.quarantined, run.skipped) == ("partial", 1, 2)
    assert sorted(reason.partition(" https")[0] for reason in shop.skips(run)) == [
        "not there: status 404:",
        "not there: status 410:",
    ]


def test_a_sitemap_that_is_not_there_is_never_skipped(tmp_path: Path) -> None:
    shop = a_shop(tmp_path / "p", fetch={"missing": "skip"})
    shop.write(params={"sitemap": "https://shop.example/nothing.xml"}, fetch={"missing": "skip"})
    assert shop.run().state == "failed"


def test_a_fetch_may_say_it_for_itself(tmp_path: Path) -> None:
    skipping = PIPELINES.replace('fetch(page["url"])', 'fetch(page["url"], missing="skip")')
    failing = PIPELINES.replace('fetch(page["url"])', 'fetch(page["url"], missing="fail")')
    shop = a_shop(tmp_path / "skip")
    shop.write(pipelines=skipping)
    assert shop.run().skipped == 2
    shop = a_shop(tmp_path / "fail")
    shop.write(pipelines=failing, fetch={"missing": "skip"})
    assert shop.run().skipped == 0


def test_an_api_is_asked_with_json_and_params(tmp_path: Path) -> None:
    asking = PIPELINES.replace(
        'fetch(page["url"])',
        'fetch("https://shop.example/api", params={{"page": 1}}, json={{"q": "shoes"}}, timeout=5)',
    )
    site = Site()
    site.page("/a", "here")
    site.page("/api?page=1", "answer")
    shop = Shop(tmp_path / "p", site)
    shop.write(pipelines=asking)
    assert shop.run().state == "completed"
    assert set(site.take()) == {"/sitemap.xml", "/api?page=1"}


def test_skipped_pages_are_counted_and_their_entries_in_quarantine_are_closed(
    tmp_path: Path,
) -> None:
    shop = a_shop(tmp_path)
    assert shop.run().quarantined == 3
    shop.write(fetch={"missing": "skip"})

    run = shop.run()

    assert (run.pages_missing, run.disallowed) == (2, 0)
    with shop.project() as project:
        [left] = project.connection.quarantine.each(EntryFilter())
    assert left.key == "https://shop.example/refused"
