"""The connector `web`: the conformance suite by sitemap and by links, scopes, traps and structured data."""

from __future__ import annotations

import hashlib
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from penstock.connectors.web.links import Reach, canonical, trap_of
from penstock.errors import ConfigError
from penstock.testing import RawResponse, Request, answer
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place, Trial

SITE = "https://shop.example"


class SitemapPlace(Place):
    connector = "web"
    about = {  # noqa: RUF012
        "fetch": {"robots": False, "headers": {"Authorization": "Bearer ${SECRET}"}}
    }
    is_locked = False

    def keys(self) -> dict[str, Any]:
        return {"sitemap": f"{SITE}/sitemap.xml"}

    def put(self, name: str, text: str) -> bool:
        self.texts[name] = text
        return True

    def remove(self, name: str) -> None:
        del self.texts[name]

    def key(self, name: str) -> str:
        return f"{SITE}/p/{quote(name, safe='')}"

    def lock(self) -> bool:
        self.is_locked = True
        return True

    def pages(self) -> dict[str, str]:
        entries = "".join(f"<url><loc>{escape(self.key(name))}</loc></url>" for name in self.texts)
        return {f"{SITE}/sitemap.xml": f"<urlset>{entries}</urlset>"}

    def page(self, request: Request) -> RawResponse:
        if self.is_locked:
            return answer("", status=401)
        # A client may spell a character as itself or as %XX; to a server they are the same.
        url = unquote(request.url)
        name = url.removeprefix(f"{SITE}/p/")
        if name != url and name in self.texts:
            text = escape(self.texts[name])
            found: str | None = f"<html><title>{escape(name)}</title><main>{text}</main></html>"
        else:
            found = {unquote(each): body for each, body in self.pages().items()}.get(url)
        if found is None:
            return answer("", status=404)
        body = found.encode("utf-8", "surrogatepass")
        tag = f'"{hashlib.sha256(body).hexdigest()}"'
        if request.headers.get("If-None-Match") == tag:
            return answer("", status=304)
        return answer(body, headers={"ETag": tag})


class LinksPlace(SitemapPlace):
    own = frozenset({f"{SITE}/"})

    def keys(self) -> dict[str, Any]:
        return {"url": f"{SITE}/"}

    def pages(self) -> dict[str, str]:
        links = "".join(f'<a href="{escape(self.key(name))}">.</a>' for name in self.texts)
        return {f"{SITE}/": f"<main><p>Welcome</p>{links}</main>"}


class TestBySitemap(ConnectorSuite):
    place = SitemapPlace
    # Pages are parsed, which is slow while memory is traced; TestManyPages has very many.
    many = 40


class LargePlace(SitemapPlace):
    def keys(self) -> dict[str, Any]:
        return {**super().keys(), "max_pages": 1_000_000}


@pytest.mark.torture
class TestManyPages(ConnectorSuite):
    place = LargePlace
    many = 25_000
    writes = ALL_WRITES


class TestByLinks(ConnectorSuite):
    place = LinksPlace
    many = 40


class Site(SitemapPlace):
    """Pages by their address, as they are."""

    chosen: dict[str, Any] = {}  # noqa: RUF012
    bodies: dict[str, str] = {}  # noqa: RUF012

    def keys(self) -> dict[str, Any]:
        return dict(self.chosen)

    def pages(self) -> dict[str, str]:
        return self.bodies


def site(folder: Path, bodies: dict[str, str], **keys: Any) -> Trial:
    place = Site(folder)
    place.bodies, place.chosen = {f"{SITE}{path}": body for path, body in bodies.items()}, keys
    return Trial(folder, place)


def linked(*paths: str) -> str:
    return "<main>" + "".join(f'<a href="{path}">x</a>' for path in paths) + "</main>"


def test_links_are_followed_within_depth_scope_and_patterns(tmp_path: Path) -> None:
    bodies = {
        "/a/": linked(
            "one", "/b/", "two?utm_source=x", "https://other.example/", "/a/photo.jpg", "skip/me"
        ),
        "/a/one": linked("deep"),
        "/a/deep": linked("deeper"),
        "/a/two": "two",
        "/a/skip/me": "no",
        "/b/": "elsewhere",
    }
    trial = site(
        tmp_path, bodies, url=f"{SITE}/a/", depth=2, scope="prefix", exclude=["/a/skip/**"]
    )
    assert trial.run().state == "completed"
    assert {key.removeprefix(SITE) for key in trial.documents()} == {
        "/a/",
        "/a/one",
        "/a/two",
        "/a/deep",
    }


class FolderPlace(Place):
    """A site that is a folder, beginning with a page that leads to all others."""

    connector = "web"

    def keys(self) -> dict[str, Any]:
        return {"url": "./site/index.html"}

    def put(self, name: str, text: str) -> bool:
        (self.folder / "site").mkdir(exist_ok=True)
        (self.folder / "site" / name).write_text(text)
        return True

    def remove(self, name: str) -> None:
        (self.folder / "site" / name).unlink()

    def key(self, name: str) -> str:
        return name

    def lock(self) -> bool:
        return False


def test_a_folder_is_read_as_a_site_and_nothing_beside_it(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path)
    (tmp_path / "secret.html").write_text("<main>SECRET</main>")
    links = ("a b.html", "more/", "none.html", "../secret.html", "%2e%2e/secret.html", "link.html")
    place.put("index.html", "".join(f'<a href="{link}">x</a>' for link in links))
    place.put("a b.html", "<title>A</title><main>first</main>")
    (tmp_path / "site" / "link.html").symlink_to(tmp_path / "secret.html")
    (tmp_path / "site" / "more").mkdir()
    (tmp_path / "site" / "more" / "index.html").write_text("<title>More</title>")
    trial = Trial(tmp_path, place)
    run = trial.run()
    assert sorted(trial.documents()) == ["a b.html", "index.html", "more/"]
    assert "SECRET" not in str(trial.records())
    assert run.state == "completed"

    place.put("a b.html", "<title>A</title><main>second</main>")
    trial.run()
    assert trial.documents()["a b.html"]["text"] == "second"
    (tmp_path / "site").rename(tmp_path / "away")
    assert trial.run().state != "completed"
    assert len(trial.documents()) == 3
    (tmp_path / "away").rename(tmp_path / "site")
    place.remove("a b.html")
    trial.run()
    assert sorted(trial.documents()) == ["index.html", "more/"]


@pytest.mark.parametrize("url", ["shop.example", "ftp://shop.example/", "site/page.txt"])
def test_what_is_neither_an_address_nor_a_page_is_refused(tmp_path: Path, url: str) -> None:
    place = FolderPlace(tmp_path)
    place.keys = lambda: {"url": url}  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match=r"or a file such as \./site/index\.html"):
        Trial(tmp_path, place).run()


def test_a_later_run_finds_what_is_new_behind_pages_that_did_not_change(tmp_path: Path) -> None:
    trial = site(
        tmp_path, {"/": linked("/one"), "/one": linked("/two"), "/two": "two"}, url=f"{SITE}/"
    )
    trial.run()
    place = trial.place
    assert isinstance(place, Site)
    place.bodies[f"{SITE}/two"] = linked("/three")
    place.bodies[f"{SITE}/three"] = "three"
    run = trial.run()
    assert sorted(key.removeprefix(SITE) for key in trial.items_read(run)) == ["/three", "/two"]


def test_a_page_that_its_sitemap_says_is_unchanged_is_not_asked_for(tmp_path: Path) -> None:
    bodies = {
        "/sitemap.xml": f"<urlset><url><loc>{SITE}/a</loc><lastmod>2020-01-01</lastmod></url>"
        f"<url><loc>{SITE}/b</loc></url></urlset>",
        "/a": "a",
        "/b": "b",
    }
    trial = site(tmp_path, bodies, sitemap=f"{SITE}/sitemap.xml")
    trial.run()
    trial.place.requests.clear()
    trial.run()
    assert sorted(url for _, url in trial.place.requests) == [f"{SITE}/b", f"{SITE}/sitemap.xml"]


def test_an_endless_site_ends_at_its_bounds(tmp_path: Path) -> None:
    class Endless(Site):
        def page(self, request: Request) -> RawResponse:
            number = len(request.url) + len(self.requests)
            return answer(
                linked(
                    f"/n/{number}", f"/n/{number}x", "a/a/a/a/a", f"/cal?date={3000 + number}-01-01"
                )
            )

    place = Endless(tmp_path)
    place.chosen = {"url": f"{SITE}/", "depth": 50, "max_pages": 30}
    trial = Trial(tmp_path, place)
    trial.run()
    assert len(trial.documents()) <= 30


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("HTTPS://Shop.Example:443", "https://shop.example/"),
        ("http://a.example/x;jsessionid=12?b=1&PHPSESSID=3#top", "http://a.example/x?b=1"),
        ("https://a.example/?utm_source=x&gclid=1&q=%20a", "https://a.example/?q=+a"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
    ],
)
def test_an_address_has_one_spelling(url: str, same: str) -> None:
    assert canonical(url) == same
    assert canonical(same) == same


@pytest.mark.parametrize(
    ("path", "trap"),
    [
        ("/calendar/2199/01", "calendar"),
        ("/events?month=1899-02", "calendar"),
        ("/calendar/2026/11", ""),
        ("/archive/2199/01", ""),
        ("/a/b/a/b/a/b/a/b", "repeated path"),
        ("/s?color=1&size=2&brand=3&price=4&sort=5", "facets"),
        ("/x" * 16, "deep path"),
        ("/" + "y" * 600, "long address"),
        ("/product/17?page=2", ""),
    ],
)
def test_traps_are_recognised(path: str, trap: str) -> None:
    assert trap_of(SITE + path, 2026) == trap


def test_scopes_tell_hosts_paths_and_domains_apart() -> None:
    start = "https://www.shop.example/de/index.html"
    for scope, url, is_in in (
        ("host", "https://shop.example/en/", True),
        ("host", "https://api.shop.example/", False),
        ("prefix", "https://shop.example/de/a", True),
        ("prefix", "https://shop.example/en/", False),
        ("domain", "https://api.shop.example/", True),
        ("domain", "https://notshop.example/", False),
    ):
        assert Reach(start, scope).holds(url) is is_in  # type: ignore[arg-type]
