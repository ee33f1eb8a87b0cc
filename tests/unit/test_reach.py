"""What the configuration meant for a source's own site does not follow the links of its content."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.demo import folder as demo
from penstock.errors import ConfigError
from penstock.http.fetch import AddressRefused, FetchError
from penstock.http.network import RawResponse, Request
from penstock.http.reach import reach_of
from penstock.project import Project
from penstock.settings import FetchPolicy, load_settings
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock
from tests.hostile.loopback import in_loop
from tests.hostile.offline import FakeNetwork, a_fetcher, raw

SECRET = "hunter2-canary"
SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def a_sitemap(*locations: str, of: str = "url") -> bytes:
    root = "urlset" if of == "url" else "sitemapindex"
    rows = "".join(f"<{of}><loc>{each}</loc></{of}>" for each in locations)
    return f'<{root} xmlns="{SPACE}">{rows}</{root}>'.encode()


class Web:
    """Pages by URL; what each request carried is kept."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self.pages = pages
        self.sent: list[Request] = []

    async def answer(self, request: Request) -> RawResponse:
        self.sent.append(request)
        body = self.pages.get(request.url)
        return raw(404) if body is None else raw(200, body)

    def asked(self) -> set[str]:
        return {sent.url for sent in self.sent if not sent.url.endswith("/robots.txt")}

    def trusted(self) -> set[str]:
        """The URLs that were asked for with the credential."""
        return {sent.url for sent in self.sent if SECRET in sent.headers.values()}


def run_first_project(
    folder: Path, web: Web, monkeypatch: pytest.MonkeyPatch, fetch: str
) -> list[str]:
    """Run what `penstock init` writes, with this `fetch`; what its journal says."""
    for name, text in demo.template("first"):
        (folder / name).write_text(text)
    config = folder / "penstock.yaml"
    config.write_text(config.read_text() + f"    fetch: {fetch}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "products", raising=False)
    with Project.load(folder) as project:
        project.clock = clock = VirtualClock()
        run_id = project.run("example.com")
        network = ScriptedNetwork(web.answer)
        with Simulation(project, network, seed=1, clock=clock) as simulation:
            simulation.run()
        return [
            event.detail for event in project.connection.journal.events(run_id=run_id, limit=1000)
        ]


MIXED = {
    "https://example.com/sitemap.xml": a_sitemap(
        "https://example.com/s/own.xml", "https://evil.example/s/nested.xml", of="sitemap"
    ),
    "https://example.com/s/own.xml": a_sitemap(
        "https://example.com/a",
        "https://www.example.com/b",
        "http://example.com/plain",
        "https://shop.example.com/c",
        "https://example.com:8443/port",
        "https://evil.example/d",
        "https://example.com.evil.example/e",
        "https://notexample.com/f",
    ),
    **{
        f"https://{page}": b"<title>a page</title>"
        for page in ("example.com/a", "www.example.com/b", "shop.example.com/c", "evil.example/d")
    },
}


def test_a_sitemap_sends_no_credential_and_no_request_to_another_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(MIXED)
    headers = f"{{headers: {{Authorization: {SECRET}, X-Api-Key: {SECRET}}}}}"
    lines = run_first_project(tmp_path, web, monkeypatch, headers)
    own = {
        "https://example.com/sitemap.xml",
        "https://example.com/s/own.xml",
        "https://example.com/a",
        "https://www.example.com/b",
    }
    assert web.trusted() == own
    assert web.asked() == own | {"https://shop.example.com/c", "http://example.com/plain"}
    [note] = [line for line in lines if "left out" in line]
    assert "5 entries on other sites" in note
    assert "evil.example" in note
    assert "fetch.hosts" in note


def test_hosts_that_are_named_are_reached_without_the_source_s_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web(MIXED)
    fetch = (
        f"{{headers: {{X-Api-Key: {SECRET}}}, hosts: [evil.example], "
        "headers_for: {'https://evil.example': {X-Own: theirs}}}"
    )
    run_first_project(tmp_path, web, monkeypatch, fetch)
    assert "https://evil.example/d" in web.asked() - web.trusted()
    [there] = [sent for sent in web.sent if sent.url == "https://evil.example/d"]
    assert there.headers["X-Own"] == "theirs"
    # `hosts` bounds every request: what is below the source's own host is not named here.
    assert "https://shop.example.com/c" not in web.asked()


def test_a_sitemap_of_nothing_but_other_sites_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = "https://example.com/sitemap.xml"
    web = Web({top: a_sitemap("https://cdn.example/a", "https://cdn.example/b")})
    lines = run_first_project(tmp_path, web, monkeypatch, "{}")
    assert any("2 entries on other sites left out (cdn.example)" in line for line in lines)
    assert web.asked() == {top}


OWN = FetchPolicy(
    robots=False,
    headers={"Authorization": SECRET, "Accept-Language": "fr"},
    addresses=("https://acme.com", "https://www.acme.com", "http://api.acme.com:8080/v1?x={y}"),
)


@pytest.mark.parametrize(
    ("url", "is_trusted"),
    [
        ("https://acme.com/a", True),
        ("https://ACME.com:443/a", True),
        ("https://www.acme.com/a", True),
        ("http://api.acme.com:8080/v2", True),
        ("http://acme.com/a", False),
        ("https://acme.com:8443/a", False),
        ("https://api.acme.com:8080/v2", False),
        ("https://acme.com.evil.example/a", False),
        ("https://shop.acme.com/a", False),
    ],
)
@in_loop
async def test_headers_go_to_the_origins_of_the_source_s_addresses_alone(
    url: str, is_trusted: bool
) -> None:
    asked = url.lower().replace(":443", "")
    network = FakeNetwork({asked: raw()})
    await a_fetcher(network).fetch(url, OWN)
    [sent] = network.sent
    assert (SECRET in sent.headers.values()) is is_trusted
    assert sent.headers["Accept-Language"] == "fr"


@in_loop
async def test_a_redirect_and_a_link_stay_within_the_hosts_that_are_named() -> None:
    policy = FetchPolicy(robots=False, addresses=("https://acme.com",), hosts=("*.cdn.example",))
    network = FakeNetwork(
        {
            "https://acme.com/out": raw(302, location="https://evil.example/"),
            "https://acme.com/in": raw(302, location="https://a.cdn.example/x"),
            "https://a.cdn.example/x": raw(),
        }
    )
    fetcher = a_fetcher(network)
    assert (await fetcher.fetch("https://acme.com/in", policy)).url == "https://a.cdn.example/x"
    for url in ("https://acme.com/out", "https://cdn.example/", "https://evil.example/"):
        with pytest.raises(AddressRefused, match=r"fetch\.hosts"):
            await fetcher.fetch(url, policy)
    assert not [url for url in network.urls if "evil" in url]


@in_loop
async def test_robots_txt_is_not_followed_to_a_host_that_is_not_named() -> None:
    policy = FetchPolicy(addresses=("https://acme.com",), hosts=())
    network = FakeNetwork(
        {"https://acme.com/robots.txt": raw(302, location="https://evil.example/robots.txt")}
    )
    with pytest.raises(FetchError, match="refused address"):
        await a_fetcher(network).fetch("https://acme.com/a", policy)
    assert network.urls == ["https://acme.com/robots.txt"]


def configured(folder: Path, source: str) -> None:
    (folder / "penstock.yaml").write_text(f"project: p\nsources:\n{source}\n")
    load_settings(folder, environ={})


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("  prices: {pipeline: 'a:b', fetch: {headers: {X-Key: k}}}", "headers_for"),
        (
            "  a.com: {pipeline: 'a:b', fetch: {headers_for: {api.com: {X: k}}}}",
            "must be an origin",
        ),
        (
            "  a.com: {pipeline: 'a:b', fetch: {headers_for: {'https://a.com/b': {X: k}}}}",
            "must be an origin",
        ),
        ("  a.com: {pipeline: 'a:b', fetch: {hosts: a.com}}", "must be a list"),
        ("  a.com: {pipeline: 'a:b', fetch: {hosts: ['https://a.com/']}}", "needs hosts such as"),
    ],
)
def test_headers_without_a_site_and_hosts_that_are_none_are_refused(
    tmp_path: Path, source: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        configured(tmp_path, source)


def test_headers_that_tell_no_secret_need_no_site(tmp_path: Path) -> None:
    configured(tmp_path, "  prices: {pipeline: 'a:b', fetch: {headers: {Accept-Language: fr}}}")


def test_a_host_in_another_script_is_the_one_that_requests_name() -> None:
    reach = reach_of((), ("bücher.example", "*.bücher.example"))
    assert reach.admits("xn--bcher-kva.example")
    assert reach.admits("www.xn--bcher-kva.example")
    assert not reach.admits("bucher.example")
