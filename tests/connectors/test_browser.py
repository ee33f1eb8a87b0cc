"""The browser: it never goes out by itself, ends what does not end, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace as with_policy
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from penstock.http.browser.chromium import find_chromium
from penstock.http.browser.guard import over
from penstock.http.browser.process_tree import Process, below, kill, looked_at, marked
from penstock.http.browser.renderer import RENDERED, RenderFailed
from penstock.http.network import AiohttpNetwork, RawResponse, Request
from penstock.testing import ScriptedNetwork, answer
from tests.connectors.browser_trial import (
    OPEN,
    QUICK,
    SITE,
    Drawing,
    SharedBrowsers,
    wait_for_end,
)

SOON = replace(QUICK, wait_timeout_s=1.5)
JAVASCRIPT = {"content-type": "text/javascript"}
Pages = dict[str, str | bytes | RawResponse]


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedBrowsers]:
    shared = SharedBrowsers()
    yield shared
    shared.browsers.close()


def text_of(html: bytes) -> str:
    parser = _Text()
    parser.feed(html.decode())
    return "".join(parser.found)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


class CountingServer:
    """Counts whoever connects to it, by TCP or UDP, and answers nothing else than that it is there."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.datagrams = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        endpoint = loop.create_datagram_endpoint(lambda: _Datagrams(self), ("127.0.0.1", port))
        datagrams, _ = await endpoint
        try:
            yield port
        finally:
            datagrams.close()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        self.lines.append(line.decode("latin-1").strip())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nhi")
        await writer.drain()
        writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: CountingServer) -> None:
        self._server = server

    def datagram_received(self, data: bytes, address: object) -> None:
        self._server.datagrams += 1


def going_out(port: int) -> str:
    """A page that tries every way out that a browser has."""
    there = f"http://127.0.0.1:{port}"
    return f"""<html><head>
<link rel=preconnect href="{there}"><link rel=dns-prefetch href="http://localhost:{port}">
<link rel=prefetch href="{there}/prefetch"><link rel=preload as=script href="{there}/preload">
<link rel=stylesheet href="{there}/css"><link rel=manifest href="{there}/manifest">
<link rel=icon href="{there}/icon">
<style>@import url("{there}/import"); body {{ background: url("{there}/background") }}
@font-face {{ font-family: f; src: url("{there}/font") }} p {{ font-family: f }}</style>
<script type=speculationrules>{{"prefetch":[{{"urls":["{there}/rules"],"eagerness":"immediate"}}]}}</script>
</head><body><p>text</p>
<iframe src="{there}/frame"></iframe><iframe src="/moved"></iframe><img src="{there}/image">
<object data="{there}/object"></object><embed src="{there}/embed"><video src="{there}/video"></video>
<a id=ping href="#x" ping="{there}/ping">x</a>
<form id=form target=frame method=post action="{there}/form"></form><iframe name=frame></iframe>
<main></main><script>
const tried = [];
const attempt = (what) => {{ try {{ tried.push(Promise.resolve(what()).catch(() => 0)); }} catch {{}} }};
attempt(() => fetch("{there}/fetch"));
attempt(() => fetch("http://169.254.169.254/latest/meta-data"));
attempt(() => fetch("http://localhost:{port}/name"));
attempt(() => fetch("http://[::1]:{port}/six"));
attempt(() => fetch("http://2130706433:{port}/number"));
attempt(() => fetch("/moved"));
attempt(() => navigator.sendBeacon("{there}/beacon", "x"));
attempt(() => {{ new EventSource("{there}/events"); }});
attempt(() => new Promise((done) => {{
  const socket = new WebSocket("ws://127.0.0.1:{port}/socket");
  socket.onopen = socket.onerror = socket.onclose = done;
}}));
attempt(() => navigator.serviceWorker.register("/worker.js"));
attempt(() => new Promise((done) => {{
  const source = `importScripts("{there}/in-worker")`;
  const worker = new Worker(URL.createObjectURL(new Blob([source])));
  worker.onerror = worker.onmessage = done;
}}));
attempt(() => new Promise((done) => {{
  const frame = document.createElement("iframe");
  document.body.append(frame);
  const Peer = window.RTCPeerConnection || frame.contentWindow.RTCPeerConnection;
  const peer = new Peer({{iceServers: [{{urls: "stun:127.0.0.1:{port}"}},
    {{urls: "turn:127.0.0.1:{port}?transport=tcp", username: "x", credential: "y"}}]}});
  peer.createDataChannel("x");
  peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && done();
  setTimeout(done, 1500);
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
}}));
attempt(() => new WebTransport("https://127.0.0.1:{port}/transport").ready);
document.getElementById("ping").click();
document.getElementById("form").submit();
Promise.all(tried).then(() => {{ document.querySelector("main").id = "tried"; }});
</script></body></html>"""


class Around:
    """The made-up site, and the real network around it."""

    def __init__(self, pages: dict[str, str | RawResponse]) -> None:
        self._pages = {SITE + path: page for path, page in pages.items()}
        self._real = AiohttpNetwork()
        self.sent: list[str] = []

    async def send(self, request: Request) -> RawResponse:
        found = self._pages.get(request.url)
        if found is not None:
            return found if isinstance(found, RawResponse) else answer(found)
        if request.url.startswith(SITE):
            return answer("", status=404)
        self.sent.append(f"{request.method} {request.url}")
        return await self._real.send(request)

    async def close(self) -> None:
        await self._real.close()


EVERYTHING = replace(QUICK, wait="selector #tried", block=())


def go_out(shared: SharedBrowsers, *, is_allowed: bool) -> tuple[CountingServer, Around]:
    server = CountingServer()

    async def run() -> Around:
        async with server.serving() as port:
            moved = answer("", status=302, headers={"location": f"http://127.0.0.1:{port}/moved"})
            around = Around({"/": going_out(port), "/moved": moved, "/worker.js": "fetch('/x')"})
            drawing = Drawing(shared, network=around)
            await drawing.drawn("/", EVERYTHING, with_policy(OPEN, allow_private=is_allowed))
        return around

    shared.clock = None
    return server, asyncio.run(run())


def test_a_page_reaches_no_private_address_by_any_way(shared: SharedBrowsers) -> None:
    server, around = go_out(shared, is_allowed=False)
    assert (server.lines, server.datagrams) == ([], 0)
    # They were asked for, and refused by the rules that every source has.
    assert any("/latest/meta-data" in sent for sent in around.sent)
    assert len({sent.rpartition("/")[2] for sent in around.sent}) >= 8


def test_what_a_page_may_reach_it_reaches_through_us_alone(shared: SharedBrowsers) -> None:
    server, around = go_out(shared, is_allowed=True)
    ours = [sent.rpartition("/")[2] for sent in around.sent]
    assert {"fetch", "css", "image", "frame"} <= set(ours)
    # A request of ours that the page does not wait for any more may have connected and asked for nothing.
    asked = [line for line in server.lines if line]
    came = Counter(line.split(" ")[1].strip("/") for line in asked)
    assert came <= Counter(ours)
    assert len(server.lines) <= len(ours)
    assert server.datagrams == 0
    # Data goes to the source's own hosts only.
    assert [line for line in asked if not line.startswith("GET ")] == []


FINE = "<main>fine</main><script>document.querySelector('main').append(', indeed')</script>"
HOSTILE = {
    "dialogs": "<main></main><script>alert(1); confirm(2); prompt(3); document.querySelector('main')"
    ".textContent = 'after'; onbeforeunload = () => 'stay'</script>",
    "windows": "<main>after</main><script>for (let i = 0; i < 200; i++) open('/' + i)</script>",
    "download": "<main>after</main><script>const link = document.createElement('a'); link.href = "
    "'data:application/x;base64,AAAA'; link.download = 'x'; link.click()</script>",
    "title": f"<title>{'t' * 3_000_000}</title><main>after</main>",
    "history": "<main>after</main><script>for (let i = 0; i < 300; i++) "
    "try { history.pushState(0, '', '/p' + i) } catch {}</script>",
    "form": "<main>after</main><form method=post action='/x'></form>"
    "<script>document.forms[0].submit()</script>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_that_misbehaves_is_drawn_all_the_same(shared: SharedBrowsers, name: str) -> None:
    drawing = Drawing(shared, {"/": HOSTILE[name], "/fine": FINE})
    assert "after" in text_of(drawing.draw("/").response.body)
    assert "fine, indeed" in text_of(drawing.draw("/fine").response.body)


def test_pages_that_lead_to_each_other_for_ever_are_left_after_a_while(
    shared: SharedBrowsers,
) -> None:
    loop = "<meta http-equiv=refresh content='0;url=/b'><main>round</main>"
    network = ScriptedNetwork.of_pages({f"{SITE}/a": loop, f"{SITE}/b": loop.replace("/b", "/a")})
    drawing = Drawing(shared, network=network)
    options = replace(QUICK, wait="idle", wait_timeout_s=8.0)
    with suppress(RenderFailed):  # it may be as still as it gets, or not
        drawing.draw("/a", options)
    assert len(network.requests) <= 12


def test_a_page_that_never_ends_is_ended_at_its_time_and_its_neighbour_is_not(
    shared: SharedBrowsers,
) -> None:
    drawing = Drawing(
        shared, {"/spin": "<main>x</main><script>for (;;) {}</script>", "/fine": FINE}
    )

    async def both() -> list[object]:
        spinning, fine = drawing.drawn("/spin", SOON), drawing.drawn("/fine")
        return list(await asyncio.gather(spinning, fine, return_exceptions=True))

    [failed, fine] = drawing.run(both())
    assert isinstance(failed, RenderFailed)
    assert "the page did not load within 1.5 s" in str(failed)
    assert failed.kind == "transient"
    assert b"indeed" in fine.response.body


def test_a_page_that_eats_memory_is_ended_with_a_failure_that_says_so(
    shared: SharedBrowsers,
) -> None:
    eats = (
        "<script>const held = []; for (;;) held.push(new Array(1e6).fill(Math.random()))</script>"
    )
    drawing = Drawing(shared, {"/": eats})
    with pytest.raises(RenderFailed, match="used more memory than it may") as raised:
        drawing.draw("/", replace(QUICK, memory=250_000_000))
    assert raised.value.is_permanent


def test_a_page_that_grows_beyond_the_largest_body_is_refused(shared: SharedBrowsers) -> None:
    grows = (
        "<script>for (let i = 0; i < 3e4; i++) document.body.append(document.createElement('b'))"
    )
    drawing = Drawing(shared, {"/": f"<body>{grows}</script>"})
    with pytest.raises(RenderFailed, match="larger than 100000 bytes"):
        drawing.draw("/", policy=with_policy(OPEN, max_bytes=100_000))


def test_when_the_browser_dies_its_pages_are_drawn_again_by_another(shared: SharedBrowsers) -> None:
    shared.browsers.close()
    drawing = Drawing(shared, {"/": FINE})
    drawing.draw("/")
    [host] = shared.browsers.pids

    async def killed() -> bytes:
        is_first = [True]

        async def script(request: Request) -> RawResponse:
            if request.url.endswith("/x.js") and is_first.pop():
                kill([pid for pid in below(host) if b"chromium" in command_of(pid)])
                is_first.append(False)
                await asyncio.sleep(3600)
            if request.url.endswith("/x.js"):
                script = "document.querySelector('main').append('drawn')"
                return answer(script, headers=JAVASCRIPT)
            return answer("<main></main><script src=/x.js></script>")

        again = Drawing(shared, network=ScriptedNetwork(script))
        return (await again.drawn("/")).response.body

    assert b"<main>drawn</main>" in drawing.run(killed())
    assert wait_for_end(host)


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


WORKER = """
import asyncio, sys
from tests.connectors.browser_trial import Drawing, SharedBrowsers, QUICK
shared = SharedBrowsers()
drawing = Drawing(shared, {"/fine": "fine", "/spin": "<script>for (;;) {}</script>"})
drawing.draw("/fine")
print(shared.browsers.pids[0], flush=True)
drawing.draw("/spin")
"""


def test_a_worker_that_is_killed_leaves_no_chromium_behind() -> None:
    root = Path(__file__).parents[2]
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert worker.stdout is not None
    with worker.stdout as said:
        host = int(said.readline())
        folder = command_of(host).split(b"\0")[6].decode()
        pids = [host, *below(host)]
        assert len(pids) > 4
        os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    assert [pid for pid in pids if not wait_for_end(pid)] == []
    assert marked(folder) == []
    assert wait_for_end(host)
    assert not Path(folder).exists()


def test_pages_of_tabs_that_take_turns_need_no_new_process(shared: SharedBrowsers) -> None:
    drawing = Drawing(shared, {f"/{number}": f"<p>{number}</p>" for number in range(16)})
    seen: set[int] = set()

    async def draw() -> None:
        for number in range(0, 16, 2):
            pages = [drawing.drawn(f"/{each}") for each in (number, number + 1)]
            await asyncio.gather(*pages)
            seen.update(renderers(shared))

    drawing.run(draw())
    # One for each tab, and what was there before.
    assert len(seen) <= 6


def renderers(shared: SharedBrowsers) -> list[int]:
    found = [(pid, looked_at(pid)) for each in shared.browsers.pids for pid in below(each)]
    return [pid for pid, process in found if process is not None and process.is_page]


def test_chromium_leaves_out_all_that_playwright_has_it_leave_out(shared: SharedBrowsers) -> None:
    Drawing(shared, {"/": "<p>text</p>"}).draw("/")
    words = [
        set(word.removeprefix("--disable-features=").split(","))
        for each in shared.browsers.pids
        for word in command_line(below(each))
        if word.startswith("--disable-features=")
    ]
    theirs, ours = words[0], words[-1]
    assert theirs <= ours
    assert "SpareRendererForSitePerProcess" in ours - theirs


def command_line(pids: list[int]) -> list[str]:
    """Of chromium's own process: the others have a type."""
    lines = [Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in pids]
    [found] = [
        line
        for line in lines
        if "--remote-debugging-pipe" in line
        and not any(word.startswith("--type=") for word in line)
    ]
    return found


def test_memory_counts_for_each_page_and_for_all_together() -> None:
    def page(pid: int, memory: int) -> Process:
        return Process(pid, memory, is_page=True)

    assert over([page(1, 90), page(2, 120), Process(3, 500, is_page=False)], 100, 3) == [2]
    # Frames in processes of their own, none of which has too much alone.
    assert over([page(1, 80), page(2, 90)], 100, 1) == [2]
    mine = looked_at(os.getpid())
    assert mine is not None
    assert mine.memory > 1_000_000


SESSION = """<main></main><script>
document.cookie = "own=2";
const told = (path, about) => fetch(path, about).then((found) => found.text(), () => "refused");
Promise.all([told("/seen"), told("/seen", {method: "POST", body: "x"}), told("/seen", {method: "PUT"}),
  told("https://other.example/seen", {method: "POST", body: "x"}), told("https://other.example/seen")])
  .then((all) => { document.querySelector("main").textContent = all.join(" | ");
                   document.querySelector("main").id = "told"; });
</script>"""


def test_cookies_are_the_pages_own_and_data_goes_to_own_hosts_only(shared: SharedBrowsers) -> None:
    async def script(request: Request) -> RawResponse:
        if request.url.endswith("/seen"):
            cookie = request.headers.get("cookie") or request.headers.get("Cookie", "no cookie")
            headers = {"content-type": "text/plain", "access-control-allow-origin": "*"}
            named = "; ".join(sorted(cookie.split("; ")))
            auth = request.headers.get("Authorization", "nobody")
            return answer(f"{request.method} {named} {auth}", headers=headers)
        return answer(SESSION, headers={"set-cookie": "site=1; HttpOnly"})

    drawing = Drawing(shared, network=ScriptedNetwork(script))
    policy = with_policy(OPEN, headers={"Authorization": "s3cr3t"}, addresses=(SITE,))
    options = replace(QUICK, wait="selector #told")
    expected = (
        "GET own=2; site=1 s3cr3t | POST own=2; site=1 s3cr3t | refused | refused | "
        "GET no cookie nobody"
    )
    # Twice: what the first has stored is not there for the second.
    for _ in range(2):
        assert text_of(drawing.draw("/", options, policy).response.body).startswith(expected)


def test_robots_txt_is_about_pages_and_frames_not_about_what_draws_them(
    shared: SharedBrowsers,
) -> None:
    pages: Pages = {
        "/robots.txt": answer(
            "User-agent: *\nDisallow: /no/", headers={"content-type": "text/plain"}
        ),
        "/": "<main></main><script src=/no/a.js></script><iframe src=/no/frame></iframe>",
        "/no/a.js": answer(
            "document.querySelector('main').append('by script')", headers=JAVASCRIPT
        ),
        "/no/frame": "never",
    }
    network = ScriptedNetwork.of_pages({SITE + path: page for path, page in pages.items()})
    drawing = Drawing(shared, network=network)
    found = drawing.draw("/", policy=with_policy(OPEN, robots=True))
    assert "by script" in text_of(found.response.body)
    assert f"{SITE}/no/frame" not in network.requests


def test_a_redirect_is_followed_by_us_and_the_page_knows_where_it_is(
    shared: SharedBrowsers,
) -> None:
    here = "<main></main><script>document.querySelector('main').append(location.pathname)</script>"
    pages: Pages = {
        "/old": answer("", status=301, headers={"location": "/new/"}),
        "/new/": here,
        "/by-script": "<script>location.href = '/old'</script>",
    }
    drawing = Drawing(shared, pages)
    found = drawing.draw("/old").response
    assert (found.url, text_of(found.body)) == (f"{SITE}/new/", "/new/" + here[21:-9])
    options = replace(QUICK, wait="selector main")
    assert drawing.draw("/by-script", options).response.url == f"{SITE}/new/"


def test_the_response_says_that_it_was_rendered_and_has_no_validators(
    shared: SharedBrowsers,
) -> None:
    page = answer(FINE, headers={"etag": '"1"', "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT"})
    found = Drawing(shared, {"/": page}).draw("/", replace(QUICK, screenshot="always"))
    assert set(found.response.headers) == {"content-type", RENDERED}
    assert found.screenshot is not None
    assert found.screenshot.body.startswith(b"\x89PNG")


def test_scripts_that_many_pages_share_are_fetched_once_if_their_server_says_so(
    shared: SharedBrowsers,
) -> None:
    kept = answer("1", headers={**JAVASCRIPT, "cache-control": "max-age=600"})
    page = "<script src=/kept.js></script><script src=/other.js></script>" * 2
    frames = "<iframe src=/f1></iframe><iframe src=/f2></iframe>"
    pages: Pages = {"/": frames, "/f1": page, "/f2": page, "/kept.js": kept}
    pages["/other.js"] = answer("1", headers=JAVASCRIPT)
    network = ScriptedNetwork.of_pages({SITE + path: found for path, found in pages.items()})
    Drawing(shared, network=network).draw("/")
    assert network.requests.count(f"{SITE}/kept.js") <= 2
    assert network.requests.count(f"{SITE}/other.js") >= 2


def test_a_folder_is_a_site_without_network_that_ends_at_its_edge(
    shared: SharedBrowsers, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("s3cr3t")
    site = tmp_path / "site"
    site.mkdir()
    (site / "link.txt").symlink_to(tmp_path / "secret.txt")
    (site / "data.txt").write_text("data")
    (site / "index.html").write_text(
        "<main></main><script>const told = (p) => fetch(p).then((f) => f.ok ? f.text() : f.status, "
        "() => 'refused'); Promise.all([told('data.txt'), told('link.txt'), told('%2e%2e%2fsecret.txt'), "
        "told('https://shop.example/')]).then((all) => { document.querySelector('main').textContent = "
        "all.join(' '); document.querySelector('main').id = 'told' })</script>"
    )
    options = replace(QUICK, wait="selector #told", folder=str(site))
    found = Drawing(shared, {"/": "no"}).draw("http://demo.invalid/index.html", options)
    assert text_of(found.response.body).startswith("data 404 404 refused")


def test_chromium_is_looked_for_where_it_is_named(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_chromium(str(program)) == str(program)
    assert find_chromium(str(tmp_path / "nothing")) is None
