"""Fetching: redirects, credentials, politeness and what each failure means; no network."""

from __future__ import annotations

import asyncio
import random
import traceback
from dataclasses import replace

import pytest

from penstock.http.fetch import (
    AddressRefused,
    Disallowed,
    Fetcher,
    FetchError,
    HostClosed,
    Paced,
    Response,
)
from penstock.http.network import RawResponse, Request
from penstock.http.retry_after import retry_after_s
from penstock.settings import FetchPolicy
from tests.hostile.loopback import in_loop
from tests.hostile.offline import FakeClock, FakeDoor, FakeNetwork, a_fetcher, raw

PLAIN = FetchPolicy(robots=False)
SECRET = "hunter2-canary"
HERE = "https://shop.example/a"
ROBOTS = "https://shop.example/robots.txt"


def fetched(network: FakeNetwork, url: str = HERE, policy: FetchPolicy = PLAIN) -> Response:
    return asyncio.run(a_fetcher(network).fetch(url, policy))


def failure(network: FakeNetwork, url: str = HERE, policy: FetchPolicy = PLAIN) -> FetchError:
    with pytest.raises(FetchError) as raised:
        fetched(network, url, policy)
    return raised.value


def test_a_page_comes_with_everything_known_about_it() -> None:
    network = FakeNetwork({HERE: raw(200, b"<p>", content_type="text/HTML; charset=utf-8")})
    response = fetched(network)
    assert (response.url, response.requested_url, response.status) == (HERE, HERE, 200)
    assert (response.text, response.content_type) == ("<p>", "text/html")
    assert response.fetched_at == FakeClock().now()
    assert not response.not_modified


def test_the_policy_travels_with_the_request() -> None:
    network = FakeNetwork({HERE: raw()})
    policy = FetchPolicy(
        allow_private=True,
        robots=False,
        user_agent="me/1",
        timeout_s=7,
        max_bytes=99,
    )
    fetched(network, policy=policy)
    [sent] = network.sent
    assert (sent.timeout_s, sent.max_bytes) == (7, 99)
    assert sent.allow_private
    assert sent.headers["User-Agent"] == "me/1"
    assert sent.headers["Accept-Encoding"] == "gzip, deflate"


@in_loop
async def test_a_header_of_the_call_replaces_the_policys_in_any_case() -> None:
    network = FakeNetwork({HERE: raw()})
    policy = replace(PLAIN, headers={"X-Key": "theirs", "ACCEPT": "text/html"}, addresses=(HERE,))
    await a_fetcher(network).fetch(HERE, policy, headers={"x-key": "mine"})
    headers = {name.lower(): value for name, value in network.sent[0].headers.items()}
    assert len(headers) == len(network.sent[0].headers)
    assert (headers["x-key"], headers["accept"]) == ("mine", "text/html")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "end"),
    [
        ("/b", "https://shop.example/b"),
        ("b?c=1", "https://shop.example/b?c=1"),
        ("?c=1", "https://shop.example/a?c=1"),
        ("//other.example/b", "https://other.example/b"),
        ("http://other.example:81/b#d", "http://other.example:81/b"),
        ("  /b  ", "https://shop.example/b"),
    ],
)
def test_redirects_are_followed_in_every_form(status: int, location: str, end: str) -> None:
    network = FakeNetwork({HERE: raw(status, location=location), end: raw(200, b"there")})
    response = fetched(network)
    assert (response.url, response.requested_url, response.body) == (end, HERE, b"there")


def test_redirects_end_at_the_policys_limit() -> None:
    chain = {f"https://shop.example/{n}": raw(302, location=f"/{n + 1}") for n in range(20)}
    network = FakeNetwork(dict(chain))
    error = failure(network, "https://shop.example/0")
    assert len(network.sent) == PLAIN.max_redirects + 1
    assert error.is_permanent


@pytest.mark.parametrize("headers", [{}, {"location": ""}, {"location": "http://a" + "b" * 9999}])
def test_a_redirect_to_nowhere_is_the_sites_fault(headers: dict[str, str]) -> None:
    error = failure(FakeNetwork({HERE: RawResponse(302, headers, b"")}))
    assert (error.is_permanent, error.kind) == (True, "data")


@pytest.mark.parametrize(
    "location",
    """file:///etc/passwd data:text/html,x ftp://shop.example/ s3://bucket/key gopher://a/ dict://a/
    ldap://a/ javascript:alert(1) about:blank ws://shop.example/ blob:https://a/b mailto:a@b.c
    http://2130706433/ http://user:pw@shop.example/ http://0x7f.1/ http:///nohost http://[::1""".split(),
)
def test_a_redirect_may_only_lead_to_http_and_https(location: str) -> None:
    network = FakeNetwork({HERE: raw(302, location=location)})
    assert isinstance(failure(network), AddressRefused)
    assert network.urls == [HERE]


CREDENTIALS = {"Authorization": SECRET, "Cookie": SECRET, "X-Api-Key": SECRET}
SAME = [
    ("https://a.example/x", "https://a.example/y"),
    ("https://a.example/x", "https://a.example:443/y"),
    ("https://A.example/x", "https://a.EXAMPLE/y"),
    ("http://a.example:80/x", "http://a.example/y"),
    ("http://a.example:8080/x", "/y"),
]
SCHEMES, HOSTS, PORTS = ("http", "https"), ("a.example", "b.a.example", "b.example"), ("", ":8080")
ORIGINS = [f"{scheme}://{host}{port}" for scheme in SCHEMES for host in HOSTS for port in PORTS]
OTHER = [(f"{one}/x", f"{two}/y") for one in ORIGINS for two in ORIGINS if one != two]


@pytest.mark.parametrize(("start", "end"), SAME)
def test_credentials_stay_with_their_origin(start: str, end: str) -> None:
    network = FakeNetwork()

    async def send(request: Request) -> RawResponse:
        network.sent.append(request)
        return raw(302, location=end) if request.url.endswith("/x") else raw()

    network.send = send  # type: ignore[method-assign]
    fetched(network, start, replace(PLAIN, headers=CREDENTIALS, addresses=(start,)))
    assert CREDENTIALS.items() <= network.sent[1].headers.items()


def test_credentials_are_dropped_on_any_change_of_scheme_host_or_port() -> None:
    assert len(OTHER) > 50
    for start, end in OTHER:
        network = FakeNetwork({start: raw(307, location=end), end: raw()})
        fetched(network, start, replace(PLAIN, headers=CREDENTIALS, addresses=(start,)))
        assert SECRET in network.sent[0].headers.values()
        assert SECRET not in network.sent[1].headers.values(), (start, end)


def test_credentials_do_not_come_back_with_the_chain() -> None:
    back = {
        "https://a.example/1": raw(302, location="https://b.example/2"),
        "https://b.example/2": raw(302, location="https://a.example/3"),
        "https://a.example/3": raw(),
    }
    network = FakeNetwork(dict(back))
    policy = replace(PLAIN, headers=CREDENTIALS, addresses=tuple(back))
    fetched(network, "https://a.example/1", policy)
    assert [SECRET in sent.headers.values() for sent in network.sent] == [True, False, False]


@in_loop
async def test_credentials_of_the_call_and_conditions_are_dropped_too() -> None:
    there = "https://b.example/"
    network = FakeNetwork({HERE: raw(302, location=there), there: raw()})
    headers = {"Proxy-Authorization": SECRET, "Accept-Language": "fr"}
    await a_fetcher(network).fetch(HERE, PLAIN, headers=headers, etag=SECRET)
    assert SECRET not in network.sent[1].headers.values()
    assert network.sent[1].headers["Accept-Language"] == "fr"


@pytest.mark.parametrize(
    ("status", "method", "then", "keeps_body"),
    [
        (301, "POST", "GET", False),
        (302, "POST", "GET", False),
        (303, "POST", "GET", False),
        (303, "PUT", "GET", False),
        (303, "HEAD", "HEAD", False),
        (307, "POST", "POST", True),
        (308, "PUT", "PUT", True),
        (302, "HEAD", "HEAD", False),
    ],
)
@in_loop
async def test_a_redirect_changes_the_method_only_as_browsers_do(
    status: int, method: str, then: str, keeps_body: bool
) -> None:
    network = FakeNetwork({HERE: raw(status, location="/b"), "https://shop.example/b": raw()})
    body = None if method == "HEAD" else b"form"
    headers = {"Content-Type": "text/plain"}
    await a_fetcher(network).fetch(HERE, PLAIN, method=method, body=body, headers=headers)
    assert network.sent[1].method == then
    assert network.sent[1].body == (b"form" if keeps_body else None)


@in_loop
async def test_a_body_is_never_sent_on_to_another_origin() -> None:
    network = FakeNetwork({HERE: raw(307, location="https://b.example/")})
    with pytest.raises(FetchError):
        await a_fetcher(network).fetch(HERE, PLAIN, method="POST", body=b"login")
    assert network.urls == [HERE]


@pytest.mark.parametrize(
    ("status", "is_permanent", "kind"),
    [
        (400, True, "permanent"),
        (401, True, "auth"),
        (403, True, "auth"),
        (404, True, "permanent"),
        (408, False, "transient"),
        (410, True, "permanent"),
        (425, False, "transient"),
        (451, True, "permanent"),
        (500, False, "transient"),
        (502, False, "transient"),
        (504, False, "transient"),
        (599, False, "transient"),
        (300, True, "permanent"),
        (304, True, "permanent"),
    ],
)
def test_a_status_says_whether_trying_again_can_help(
    status: int, is_permanent: bool, kind: str
) -> None:
    error = failure(FakeNetwork({HERE: raw(status)}))
    assert (error.status, error.is_permanent, error.kind) == (status, is_permanent, kind)
    assert not isinstance(error, HostClosed)


@in_loop
async def test_what_is_not_modified_is_said_to_be() -> None:
    network = FakeNetwork({HERE: raw(304, etag='"1"')})
    response = await a_fetcher(network).fetch(HERE, PLAIN, etag='"1"', last_modified="yesterday")
    assert response.not_modified
    assert (response.status, response.body) == (304, b"")
    assert network.sent[0].headers["If-None-Match"] == '"1"'
    assert network.sent[0].headers["If-Modified-Since"] == "yesterday"


NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("header", "delay_s"),
    [
        ("120", 120.0),
        (" 5 ", 5.0),
        ("0", 1.0),
        ("3600", 3600.0),
        ("3601", 3600.0),
        ("9" * 5000, 3600.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("Tue Nov 14 22:14:20 2023", 60.0),
        ("Tue, 14 Nov 2023 23:14:20 +0100", 60.0),
        ("Tue, 14 Nov 2000 22:14:20 GMT", 1.0),
        ("Tue, 14 Nov 2099 22:14:20 GMT", 3600.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("1e3", None),
        ("²", None),
        ("٣", None),
        ("Tue, 99 Nov 2023 99:14:20 GMT", None),
        ("120, 60", None),
        ("\x00" * 100, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(header: str, delay_s: float | None) -> None:
    assert retry_after_s(header, NOW) == delay_s


@pytest.mark.parametrize("status", [429, 503])
@in_loop
async def test_a_host_that_asks_for_a_pause_is_closed_for_everyone(status: int) -> None:
    clock, network = FakeClock(), FakeNetwork()
    network.answers = {HERE: raw(status, retry_after="120"), "https://shop.example/b": raw()}
    door = FakeDoor(clock)
    fetcher = Fetcher(network, clock, random.Random(7), door)
    with pytest.raises(HostClosed) as closed:
        await fetcher.fetch(HERE, PLAIN)
    assert door.closed == {"shop.example": 120.0}
    assert (closed.value.host, closed.value.delay_s) == ("shop.example", 120.0)
    assert (closed.value.status, closed.value.is_permanent) == (status, False)
    assert fetcher.closed_until("shop.example") == clock.now() + 120.0

    clock.advance(100)
    with pytest.raises(HostClosed) as closed:
        await fetcher.fetch("https://shop.example/b", PLAIN)
    assert closed.value.delay_s == pytest.approx(20.0)
    assert network.urls == [HERE]

    clock.advance(20)
    assert (await fetcher.fetch("https://shop.example/b", PLAIN)).status == 200
    assert fetcher.closed_until("shop.example") == 0.0


def test_a_pause_without_a_time_is_half_a_minute_and_not_the_same_for_all() -> None:
    error = failure(FakeNetwork({HERE: raw(429)}))
    assert isinstance(error, HostClosed)
    assert 30.0 < error.delay_s <= 37.5


SAID = b'{"message": "You have exceeded a secondary rate limit."}'
JSON = "application/json; charset=utf-8"


@pytest.mark.parametrize(
    ("answer", "least_s", "most_s"),
    [
        (raw(403, retry_after="60"), 60, 60),
        (raw(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) + 900)), 900, 900),
        (raw(403, ratelimit_remaining="0", ratelimit_reset="45"), 45, 45),
        (raw(403, x_ratelimit_remaining="0", x_ratelimit_reset="soon"), 60, 75),
        (raw(403, SAID, content_type=JSON, x_ratelimit_remaining="4990"), 60, 75),
        (raw(429, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) + 7)), 7, 7),
        (
            # Half an hour by the clock of the server, whatever ours shows.
            raw(
                429,
                date="Tue, 14 Nov 2023 20:00:00 GMT",
                x_ratelimit_remaining="0",
                x_ratelimit_reset="1699993800",
            ),
            1800,
            1800,
        ),
        (raw(429, x_ratelimit_remaining="0", x_ratelimit_reset="9" * 12), 3600, 3600),
        (raw(429, x_ratelimit_remaining="0", x_ratelimit_reset=f"{int(NOW) + 9}000"), 9, 9),
        (raw(429, x_ratelimit_remaining="0", x_ratelimit_reset_after="2.5"), 2.5, 2.5),
        (raw(429, ratelimit='"default";r=0;t=42'), 42, 42),
        (raw(403, ratelimit="limit=100, remaining=0, reset=50"), 50, 50),
    ],
)
def test_a_refusal_that_is_a_rate_limit_is_a_pause_until_the_limit_is_reset(
    answer: RawResponse, least_s: float, most_s: float
) -> None:
    error = failure(FakeNetwork({HERE: answer}))
    assert isinstance(error, HostClosed)
    assert least_s <= error.delay_s <= most_s


@pytest.mark.parametrize(
    "answer",
    [
        raw(403, x_ratelimit_remaining="12", x_ratelimit_reset=str(int(NOW) + 900)),
        raw(403, b"<p>about our rate limit</p>", content_type="text/html"),
        raw(403, b'{"message": "Resource not accessible"}', content_type=JSON),
        raw(401, retry_after="60", x_ratelimit_remaining="0"),
    ],
)
def test_any_other_refusal_is_one_of_the_credentials(answer: RawResponse) -> None:
    error = failure(FakeNetwork({HERE: answer}))
    assert (error.kind, error.is_permanent) == ("auth", True)


@in_loop
async def test_an_answer_that_used_up_the_limit_is_the_last_one_until_the_limit_is_renewed() -> (
    None
):
    last = raw(200, b"last", x_ratelimit_remaining="0", x_ratelimit_reset="20")
    network = FakeNetwork({HERE: last, f"{HERE}2": raw(200, b"next", x_ratelimit_remaining="9")})
    clock = FakeClock()
    fetcher = Fetcher(network, clock, random.Random(7), FakeDoor(clock))
    assert (await fetcher.fetch(HERE, PLAIN)).body == b"last"
    with pytest.raises(HostClosed) as closed:
        await fetcher.fetch(f"{HERE}2", PLAIN)
    assert closed.value.delay_s == pytest.approx(20.0)
    clock.advance(20)
    assert (await fetcher.fetch(f"{HERE}2", PLAIN)).body == b"next"
    assert fetcher.closed_until("shop.example") == 0.0


@in_loop
async def test_a_closure_is_never_shortened_and_only_concerns_its_port() -> None:
    fetcher = a_fetcher(FakeNetwork({"http://a.example:81/": raw()}))
    fetcher.close_host("a.example", NOW + 100)
    fetcher.close_host("a.example", NOW + 10)
    assert fetcher.closed_until("a.example") == NOW + 100
    assert (await fetcher.fetch("http://a.example:81/", PLAIN)).status == 200


@in_loop
async def test_a_redirect_to_a_closed_host_is_not_followed() -> None:
    network = FakeNetwork({HERE: raw(302, location="https://b.example/")})
    fetcher = a_fetcher(network)
    fetcher.close_host("b.example", NOW + 9)
    with pytest.raises(HostClosed):
        await fetcher.fetch(HERE, PLAIN)
    assert network.urls == [HERE]


def test_robots_are_asked_at_every_hop_of_a_redirect() -> None:
    network = FakeNetwork(
        {
            HERE: raw(302, location="https://b.example/private"),
            "https://b.example/robots.txt": raw(200, b"User-agent: *\nDisallow: /private"),
        }
    )
    error = failure(network, policy=FetchPolicy())
    assert isinstance(error, Disallowed)
    assert network.urls[-1] == "https://b.example/robots.txt"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("is_known", [False, True])
@in_loop
async def test_robots_that_ask_for_a_pause_close_their_host_for_all(
    status: int, is_known: bool
) -> None:
    robots = "https://shop.example/robots.txt"
    clock, network = FakeClock(), FakeNetwork({HERE: raw(), robots: raw(200)})
    door = FakeDoor(clock)
    fetcher = Fetcher(network, clock, random.Random(7), door)
    if is_known:
        await fetcher.fetch(HERE, FetchPolicy())
        clock.advance(24 * 3600)
    network.answers[robots] = raw(status, retry_after="3")
    network.sent.clear()

    with pytest.raises(HostClosed) as raised:
        await fetcher.fetch(HERE, FetchPolicy())

    assert raised.value.delay_s == 3
    assert door.closed == {"shop.example": 3}
    assert network.urls == [robots]
    network.answers[robots] = raw(404)
    clock.advance(3)
    await fetcher.fetch(HERE, FetchPolicy())
    assert network.urls == [robots, robots, HERE]


@in_loop
async def test_robots_that_moved_to_a_closed_host_are_not_asked_for_there() -> None:
    network = FakeNetwork({ROBOTS: raw(302, location="https://b.example/robots.txt")})
    clock = FakeClock()
    fetcher = a_fetcher(network, clock)
    fetcher.close_host("b.example", NOW + 9)
    for _ in range(3):
        with pytest.raises(HostClosed, match=r"b\.example is closed for 9 s"):
            await fetcher.fetch(HERE, FetchPolicy())
    assert network.urls == [ROBOTS]


@in_loop
async def test_robots_that_moved_close_the_host_that_asks_for_a_pause_and_count_there() -> None:
    there = "https://b.example/robots.txt"
    clock = FakeClock()
    door = FakeDoor(clock)
    network = FakeNetwork({ROBOTS: raw(302, location=there), there: raw(429, retry_after="7")})
    fetcher = Fetcher(network, clock, random.Random(7), door)
    with pytest.raises(HostClosed, match=r"b\.example is closed for 7 s"):
        await fetcher.fetch(HERE, FetchPolicy())
    assert door.closed == {"b.example": 7}
    [(want, _)] = door.sent
    assert (want.host, want.is_of_host, want.has_breaker) == ("b.example", True, True)
    network.answers |= {there: raw(404), HERE: raw()}
    clock.advance(7)
    assert (await fetcher.fetch(HERE, FetchPolicy())).status == 200


def test_robots_never_learn_the_sources_credentials() -> None:
    network = FakeNetwork({HERE: raw()})
    fetched(network, policy=FetchPolicy(headers=CREDENTIALS, addresses=(HERE,)))
    assert network.urls == ["https://shop.example/robots.txt", HERE]
    assert SECRET not in network.sent[0].headers.values()


@in_loop
async def test_a_source_waits_for_its_place_in_time() -> None:
    slept: list[float] = []
    clock, network = FakeClock(), FakeNetwork({HERE: raw()})
    fetcher = a_fetcher(network, clock)

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.http.request_gates.asyncio.sleep", sleep)
        for _ in range(4):
            await fetcher.fetch(HERE, replace(PLAIN, rate_per_s=10.0), source="shop")
        await fetcher.fetch(HERE, replace(PLAIN, rate_per_s=10.0), source="another")
    assert slept == [0.1, 0.2, 0.3]


@in_loop
async def test_a_place_too_far_off_is_not_waited_for_nor_taken() -> None:
    clock, network = FakeClock(), FakeNetwork({HERE: raw()})
    fetcher = a_fetcher(network, clock)
    hourly = replace(PLAIN, rate_per_s=1 / 3600)
    await fetcher.fetch(HERE, hourly)
    for _ in range(3):
        with pytest.raises(Paced) as paced:
            await fetcher.fetch(HERE, hourly)
        assert paced.value.delay_s == pytest.approx(3600.0)
    clock.advance(3601)
    await fetcher.fetch(HERE, hourly)
    assert len(network.sent) == 2


def test_no_credential_reaches_the_text_of_an_error() -> None:
    url = f"https://shop.example/a?token={SECRET}&page=2"
    other = f"https://me:{SECRET}@b.example/"
    policy = replace(PLAIN, headers=CREDENTIALS, addresses=(HERE,))
    for answer in (raw(404), raw(429), raw(302, location=other), raw(302, location="file:///x")):
        error = failure(FakeNetwork({url: answer}), url, policy)
        assert SECRET not in "".join(traceback.format_exception(error))
        assert SECRET not in repr(vars(error))
    assert SECRET not in repr(Request("GET", url, CREDENTIALS))


def test_json_is_read_and_what_is_not_json_is_bad_data() -> None:
    assert fetched(FakeNetwork({HERE: raw(200, b'\xef\xbb\xbf{"a": [1]}')})).json() == {"a": [1]}
    for body in (b"", b"<p>", b"{", b"[" * 100_000, b"\xff"):
        with pytest.raises(FetchError) as raised:
            fetched(FakeNetwork({HERE: raw(200, body)})).json()
        assert raised.value.kind == "data"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("é".encode(), "", "é"),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        (b"\x80", "text/html; charset=iso-8859-1", "€"),
        (b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=latin-1", "é"),
        ("é".encode("utf-16"), "", "é"),
        ('<meta charset="windows-1251">ж'.encode("cp1251"), "", '<meta charset="windows-1251">ж'),
        ("日本".encode("shift_jis"), 'text/html; charset="Shift_JIS"', "日本"),
        (b"a\xffb", "text/html; charset=utf-8", "a�b"),
        ("naïve café".encode("cp1252"), "", "naïve café"),
        ("naïve café".encode() + b"\xff", "", "naïve café�"),
        ("a�b".encode(), "", "a�b"),
        (b"abc", "text/html; charset=idna", "abc"),
        (b"YWJj", "text/html; charset=base64", "YWJj"),
        (b"abc", "text/html; charset=utf-7", "abc"),
        (b"abc", "text/html; charset=unicode_escape", "abc"),
        (b"abc", "text/html; charset=" + "x" * 999, "abc"),
    ],
)
def test_text_goes_by_the_declared_charset_of_the_web(
    body: bytes, content_type: str, text: str
) -> None:
    response = fetched(FakeNetwork({HERE: raw(200, body, content_type=content_type)}))
    assert response.text == text


@in_loop
async def test_closing_closes_the_network() -> None:
    network = FakeNetwork()
    await a_fetcher(network).close()
    assert network.is_closed
