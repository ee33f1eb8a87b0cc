"""The connector `headless`: the conformance suite with a real browser, and what is particular to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from penstock.errors import ConfigError
from penstock.http.browser.browsers import Browsers
from penstock.http.browser.options import SCREENSHOT
from penstock.settings import load_settings
from penstock.testing import RawResponse, Request, VirtualClock, answer
from penstock.testing.connectors import ALL_WRITES, SOURCE, ConnectorSuite, Trial
from tests.connectors.browser_trial import SharedBrowsers
from tests.connectors.test_web import SITE, SitemapPlace


@pytest.fixture(scope="module", autouse=True)
def shared() -> Iterator[SharedBrowsers]:
    RenderedPlace.shared = SharedBrowsers()
    yield RenderedPlace.shared
    RenderedPlace.shared.browsers.close()


class RenderedPlace(SitemapPlace):
    """Pages whose text is there only when a script has run."""

    connector = "headless"
    shared: SharedBrowsers

    def keys(self) -> dict[str, Any]:
        return {
            "sitemap": f"{SITE}/sitemap.xml",
            "wait": "load",
            "screenshot": "never",
            "pages_per_browser": 10_000,
            "browser": self.shared.path,
        }

    def browsers(self, clock: VirtualClock) -> Browsers:
        self.shared.clock = clock
        return self.shared.browsers

    def page(self, request: Request) -> RawResponse:
        if self.is_locked:
            return answer("", status=401)
        known = {unquote(self.key(name)): text for name, text in self.texts.items()}
        text = known.get(unquote(request.url))
        if text is None:
            found = self.pages().get(request.url)
            return answer("", status=404) if found is None else answer(found)
        written = json.dumps(text).replace("<", "\\u003c")
        script = f"document.querySelector('main').textContent = {written}"
        return answer(f"<title>x</title><main></main><script>{script}</script>")


class TestRendered(ConnectorSuite):
    place = RenderedPlace
    many = 3
    writes = 2


@pytest.mark.torture
class TestRenderedAtEveryWrite(TestRendered):
    writes = ALL_WRITES


class Site(RenderedPlace):
    """Pages by their path, as they are."""

    bodies: dict[str, str | RawResponse] = {}  # noqa: RUF012
    chosen: dict[str, Any] = {}  # noqa: RUF012

    def keys(self) -> dict[str, Any]:
        return {**super().keys(), "sitemap": None, **self.chosen}

    def page(self, request: Request) -> RawResponse:
        found = self.bodies.get(request.url.removeprefix(SITE), answer("", status=404))
        return found if isinstance(found, RawResponse) else answer(found)


def site(
    folder: Path, bodies: dict[str, str | RawResponse], about: Any = None, **keys: Any
) -> Trial:
    place = Site(folder)
    place.bodies, place.chosen = bodies, keys
    place.about = {**Site.about, **(about or {})}  # type: ignore[misc]
    return Trial(folder, place)


LINKING = """<main>before</main><script>
fetch("/data").then((found) => found.text()).then((text) => {
  document.querySelector("main").innerHTML = `<a href="/next">${text}</a>`;
});</script>"""


def test_links_that_a_script_adds_are_followed_when_the_page_is_ready(tmp_path: Path) -> None:
    bodies: dict[str, str | RawResponse] = {"/": LINKING, "/data": "from data", "/next": LINKING}
    trial = site(tmp_path, bodies, url=f"{SITE}/", wait={"selector": "main a"})
    assert trial.run().state == "completed"
    assert {key: each["text"] for key, each in trial.documents().items()} == {
        f"{SITE}/": "from data",
        f"{SITE}/next": "from data",
    }


def test_requests_of_a_page_wait_for_the_rate_of_the_source(tmp_path: Path) -> None:
    calls = "".join(f"<script src='/{name}.js'></script>" for name in "abcd")
    bodies: dict[str, str | RawResponse] = {
        "/": f"<main>x</main>{calls}",
        **{
            f"/{name}.js": answer("", headers={"content-type": "text/javascript"})
            for name in "abcd"
        },
    }
    trial = site(tmp_path, bodies, {"limits": {"rate": "6/m"}}, url=f"{SITE}/", wait_timeout="15s")
    before = trial.clock.now()
    assert trial.run().state == "completed"
    assert len(trial.place.requests) == 5
    # Longer than the page has to be ready: to wait for a turn does not count.
    assert trial.clock.now() - before >= 30


def test_a_page_that_failed_leaves_a_picture_of_what_was_to_be_seen(tmp_path: Path) -> None:
    keys = {"wait": {"selector": "#never"}, "wait_timeout": "3s", "screenshot": "failed"}
    trial = site(tmp_path, {"/": "<h1>Sold out</h1>"}, url=f"{SITE}/", **keys)
    run = trial.run()
    [failed] = [job for job in trial.jobs(run) if job.state == "quarantined"]
    assert failed.error is not None
    assert "nothing on the page matches '#never' within 3 s" in failed.error
    with trial.project() as project:
        [picture, *_] = project.pages.screenshots(failed.id)
        assert project.pages.screenshots(f"{SITE}/")[0] == picture
        assert picture.url == f"{SCREENSHOT}{SITE}/"
        assert project.pages.read(picture).body.startswith(b"\x89PNG")


def test_what_is_no_html_needs_no_browser_and_keeps_its_validators(tmp_path: Path) -> None:
    data = answer('{"a": 1}', headers={"content-type": "application/json", "etag": '"1"'})
    trial = site(tmp_path, {"/d": data}, urls=[f"{SITE}/d"], browser="/nowhere/chromium")
    trial.run()
    assert trial.documents()[f"{SITE}/d"]["data"] == {"a": 1}


def test_a_missing_chromium_is_told_in_one_line_and_not_tried_again(tmp_path: Path) -> None:
    trial = site(tmp_path, {"/": "x"}, url=f"{SITE}/", browser="/nowhere/chromium")
    [failed] = [job for job in trial.jobs(trial.run()) if job.state == "quarantined"]
    assert (failed.kind, failed.tries) == ("permanent", 1)
    assert failed.error is not None
    assert "there is no /nowhere/chromium" in failed.error
    assert "apt-get install chromium" in failed.error
    assert "\n" not in failed.error


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"wait": "soon"}, "must be load, idle or {selector"),
        ({"wait": {"selektor": "a"}}, "unknown key"),
        ({"block": ["script"]}, "must not be 'script'"),
        ({"viewport": "large"}, "1280x800"),
        ({"url": "ftp://a.example/"}, "must be an address"),
    ],
)
def test_keys_that_mean_nothing_are_refused(tmp_path: Path, keys: Any, said: str) -> None:
    source = {"connector": "headless", "url": "https://a.example/", **keys}
    text = json.dumps({"project": "x", "sources": {SOURCE: source}})
    (tmp_path / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_settings(tmp_path)
