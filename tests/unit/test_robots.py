"""robots.txt: RFC 9309, case by case."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import tracemalloc
from dataclasses import dataclass, field, replace

import pytest
from protego import Protego

from penstock.http import robots as robots_module
from penstock.http.addresses import Target, look_at
from penstock.http.failures import (
    AddressRefused,
    Disallowed,
    FetchError,
    HostBroken,
    HostClosed,
    HostOutside,
    RobotsUnreachable,
)
from penstock.http.network import RawResponse, Request
from penstock.http.robots import FRESH_S, MAX_BYTES, MAX_KNOWN_BYTES, UNREACHABLE_S, Robots
from penstock.http.robots_rules import MAX_RULES, MAX_STARS, AgentRules, rules_for
from penstock.settings import FetchPolicy
from tests.hostile.loopback import in_loop
from tests.hostile.offline import Answer, FakeClock, FakeNetwork, raw

ORIGIN = "https://shop.example"
ROBOTS = f"{ORIGIN}/robots.txt"
POLICY = FetchPolicy(user_agent="penstock/1.0 (+https://penstock.example)")


def rules(text: str) -> RawResponse:
    return raw(200, text.encode())


def verdict(answer: Answer, path: str = "/a", policy: FetchPolicy = POLICY) -> bool | None:
    """True or False as robots.txt says; None if it can't be had and nothing may be fetched."""
    robots = Robots(FakeNetwork({ROBOTS: answer}), FakeClock())
    try:
        return asyncio.run(robots.is_allowed(look_at(ORIGIN + path), policy))
    except RobotsUnreachable:
        return None


STAR = "User-agent: *\n"


@pytest.mark.parametrize(
    ("answer", "path", "expected"),
    [
        (raw(200), "/a", True),
        (rules(STAR + "Disallow: /"), "/a", False),
        (rules(STAR + "Disallow:"), "/a", True),
        (rules(STAR + "Disallow: /b"), "/a", True),
        (rules(STAR + "Disallow: /a"), "/a/deep?q=1", False),
        (rules(STAR + "Disallow: /a$"), "/ab", True),
        (rules(STAR + "Disallow: /*.pdf$"), "/x/y.pdf", False),
        (rules(STAR + "Disallow: /*.pdf$"), "/x/y.pdf?z", True),
        (rules(STAR + "Disallow: /a\nAllow: /a/ok"), "/a/ok", True),
        (rules(STAR + "Allow: /a\nDisallow: /a"), "/a", True),
        (rules(STAR + "Disallow: /A"), "/a", True),
        (rules(STAR + "Disallow: /caf%C3%A9"), "/café", False),
        (rules("User-agent: penstock\nDisallow: /a\n\n" + STAR + "Disallow: /b"), "/a", False),
        (rules("User-agent: penstock\nDisallow: /a\n\n" + STAR + "Disallow: /b"), "/b", True),
        (rules("User-agent: PENSTOCK\nDisallow: /"), "/a", False),
        (rules("User-agent: stock\nDisallow: /"), "/a", True),
        (rules("User-agent: other\nDisallow: /"), "/a", True),
        (rules("User-agent: other\nUser-agent: penstock\nDisallow: /"), "/a", False),
        (rules("Disallow: /"), "/a", True),
        (rules("\ufeff" + STAR + "Disallow: /"), "/a", False),
        (rules(STAR.replace("\n", "\r") + "Disallow: /\r"), "/a", False),
        (rules(STAR + "Disallow: / # all of it"), "/a", False),
        (rules("<html><body>404, but politely</body></html>"), "/a", True),
        (raw(200, b"User-agent: *\nDisallow: /\xff\nDisallow: /a"), "/a", False),
        (rules(STAR + "Disallow: /"), "/robots.txt", True),
        (raw(204), "/a", True),
        (raw(400), "/a", True),
        (raw(401), "/a", True),
        (raw(403), "/a", True),
        (raw(404), "/a", True),
        (raw(410), "/a", True),
        (raw(429), "/a", None),
        (raw(500), "/a", None),
        (raw(502), "/a", None),
        (raw(503), "/a", None),
        (raw(599), "/a", None),
        (raw(304), "/a", None),
        (raw(302), "/a", None),
        (raw(302, location="file:///etc/passwd"), "/a", None),
        (raw(302, location="http://2130706433/robots.txt"), "/a", None),
        (FetchError("no answer within 20 s"), "/a", None),
        (FetchError("no connection"), "/a", None),
        (FetchError("the host name does not resolve"), "/a", None),
        (FetchError("the compressed body is damaged", kind="data"), "/a", None),
    ],
)
def test_what_a_robots_txt_means(answer: Answer, path: str, expected: bool | None) -> None:
    assert verdict(answer, path) is expected


@pytest.mark.parametrize(("hops", "expected"), [(1, False), (5, False), (6, True)])
@in_loop
async def test_five_redirects_are_followed_and_a_sixth_means_there_is_none(
    hops: int, expected: bool
) -> None:
    answers: dict[str, Answer] = {ROBOTS: raw(301, location="https://cdn.example/1")}
    for n in range(1, hops):
        answers[f"https://cdn.example/{n}"] = raw(301, location=f"/{n + 1}")
    answers[f"https://cdn.example/{hops}"] = rules(STAR + "Disallow: /")
    robots = Robots(FakeNetwork(answers), FakeClock())
    assert await robots.is_allowed(look_at(ORIGIN + "/a"), POLICY) is expected


@dataclass
class Gate:
    """Lets requests to other hosts out, or not."""

    network: FakeNetwork
    shut: HostClosed | None = None
    passed: list[str] = field(default_factory=list)

    async def send(self, target: Target, request: Request, _: FetchPolicy) -> RawResponse:
        if self.shut is not None:
            raise self.shut
        self.passed.append(target.text)
        return await self.network.send(request)


MOVED = "https://cdn.example/robots.txt"


@in_loop
async def test_a_robots_txt_that_moved_is_asked_for_through_the_gates_of_its_host() -> None:
    answers: dict[str, Answer] = {
        ROBOTS: raw(301, location="/robots"),
        f"{ORIGIN}/robots": raw(302, location=MOVED),
        MOVED: rules(STAR + "Disallow: /"),
    }
    gate = Gate(FakeNetwork(answers))
    robots = Robots(gate.network, FakeClock(), elsewhere=gate.send)
    assert not await robots.is_allowed(look_at(ORIGIN + "/a"), POLICY)
    assert gate.passed == [MOVED], "and what stays at home needs no gate again"


@pytest.mark.parametrize("kind", [HostClosed, HostOutside, HostBroken])
@in_loop
async def test_nobody_is_asked_again_while_the_host_it_moved_to_is_shut(
    kind: type[HostClosed],
) -> None:
    clock = FakeClock()
    gate = Gate(FakeNetwork({ROBOTS: raw(302, location=MOVED), MOVED: rules("")}))
    gate.shut = kind("cdn.example", 25.0)
    robots = Robots(gate.network, clock, elsewhere=gate.send)
    for _ in range(3):
        with pytest.raises(kind) as raised:
            await robots.is_allowed(look_at(ORIGIN), POLICY)
        assert (type(raised.value), raised.value.host) == (kind, "cdn.example")
    assert raised.value.delay_s == 25.0
    clock.advance(UNREACHABLE_S - 1)
    with pytest.raises(kind, match="cdn") as raised:
        await robots.is_allowed(look_at(ORIGIN), POLICY)
    assert raised.value.delay_s == 26.0 - UNREACHABLE_S
    assert gate.network.urls == [ROBOTS]

    gate.shut = None
    clock.advance(1)
    assert await robots.is_allowed(look_at(ORIGIN), POLICY)
    assert gate.network.urls == [ROBOTS, ROBOTS, MOVED]

    gate.shut = kind("cdn.example", 25.0)
    clock.advance(FRESH_S)
    assert await robots.is_allowed(look_at(ORIGIN), POLICY), "what was read before still holds"


@in_loop
async def test_a_refused_address_is_refused_and_not_remembered() -> None:
    network = FakeNetwork({ROBOTS: AddressRefused("private")})
    robots = Robots(network, FakeClock())
    with pytest.raises(AddressRefused):
        await robots.is_allowed(look_at(ORIGIN), POLICY)
    network.answers[ROBOTS] = rules("")
    assert await robots.is_allowed(look_at(ORIGIN), replace(POLICY, allow_private=True))


@in_loop
async def test_at_most_500_kib_are_asked_for_and_the_rest_may_be_cut() -> None:
    network = FakeNetwork({ROBOTS: raw(404)})
    await Robots(network, FakeClock()).is_allowed(look_at(ORIGIN), POLICY)
    [sent] = network.sent
    assert (sent.max_bytes, sent.is_prefix_enough) == (MAX_BYTES, True)
    assert MAX_BYTES == 500 * 1024


@in_loop
async def test_rules_hold_for_a_day() -> None:
    clock, network = FakeClock(), FakeNetwork({ROBOTS: rules(STAR + "Disallow: /a")})
    robots = Robots(network, clock)
    for _ in range(3):
        assert not await robots.is_allowed(look_at(ORIGIN + "/a"), POLICY)
    clock.advance(FRESH_S - 1)
    assert not await robots.is_allowed(look_at(ORIGIN + "/a"), POLICY)
    assert len(network.sent) == 1
    network.answers[ROBOTS] = rules("")
    clock.advance(2)
    assert await robots.is_allowed(look_at(ORIGIN + "/a"), POLICY)
    assert len(network.sent) == 2


@in_loop
async def test_each_origin_has_its_own() -> None:
    network = FakeNetwork({ROBOTS: rules(STAR + "Disallow: /")})
    robots = Robots(network, FakeClock())
    for origin in (ORIGIN, "http://shop.example", "https://shop.example:8443"):
        await robots.is_allowed(look_at(f"{origin}/a"), POLICY)
    assert len(network.sent) == 3


@in_loop
async def test_an_unreachable_one_is_asked_for_again_soon() -> None:
    clock, network = FakeClock(), FakeNetwork({ROBOTS: raw(500)})
    robots = Robots(network, clock)
    for _ in range(3):
        with pytest.raises(RobotsUnreachable) as raised:
            await robots.is_allowed(look_at(ORIGIN), POLICY)
        assert not raised.value.is_permanent
    assert len(network.sent) == 1
    network.answers[ROBOTS] = raw(404)
    clock.advance(UNREACHABLE_S)
    assert await robots.is_allowed(look_at(ORIGIN), POLICY)


@in_loop
async def test_old_rules_hold_while_new_ones_cannot_be_had() -> None:
    clock, network = FakeClock(), FakeNetwork({ROBOTS: rules(STAR + "Disallow: /a")})
    robots = Robots(network, clock)
    await robots.is_allowed(look_at(ORIGIN), POLICY)
    network.answers[ROBOTS] = FetchError("no connection")
    clock.advance(FRESH_S)
    assert await robots.is_allowed(look_at(ORIGIN + "/b"), POLICY)
    assert not await robots.is_allowed(look_at(ORIGIN + "/a"), POLICY)


@dataclass
class SlowNetwork:
    """Answers when it is let to."""

    let: asyncio.Event
    count: int = 0

    async def send(self, request: Request) -> RawResponse:
        self.count += 1
        await self.let.wait()
        return rules(STAR + "Disallow: /b")

    async def close(self) -> None:
        pass


@in_loop
async def test_many_that_ask_at_once_cause_one_request() -> None:
    network = SlowNetwork(asyncio.Event())
    robots = Robots(network, FakeClock())
    asked = [asyncio.ensure_future(robots.is_allowed(look_at(ORIGIN), POLICY)) for _ in range(50)]
    await asyncio.sleep(0)
    network.let.set()
    assert all(await asyncio.gather(*asked))
    assert network.count == 1


@in_loop
async def test_the_first_to_ask_may_be_cancelled_without_harm_to_the_others() -> None:
    network = SlowNetwork(asyncio.Event())
    robots = Robots(network, FakeClock())
    first = asyncio.ensure_future(robots.is_allowed(look_at(ORIGIN), POLICY))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(robots.is_allowed(look_at(ORIGIN), POLICY))
    await asyncio.sleep(0)
    first.cancel()
    network.let.set()
    assert await second
    assert first.cancelled()
    assert network.count == 1


@in_loop
async def test_closing_stops_what_is_being_read() -> None:
    robots = Robots(SlowNetwork(asyncio.Event()), FakeClock())
    asked = asyncio.ensure_future(robots.is_allowed(look_at(ORIGIN), POLICY))
    await asyncio.sleep(0)
    await robots.close()
    with pytest.raises(asyncio.CancelledError):
        await asked


def test_evil_patterns_take_no_time() -> None:
    patterns = "\n".join(f"Disallow: /{'*a' * 30}*b{n}" for n in range(200))
    began = time.process_time()
    assert verdict(rules(STAR + patterns), "/" + "a" * 8000)
    assert time.process_time() - began < 1.0


FIELDS = (
    "User-agent Useragent USER-AGENT Disallow Allow disalow Crawl-delay Sitemap Host Foo".split()
)
AGENTS = ["*", "penstock", "PENSTOCK*", "pen", "other", "stock", "*bot*", "", "p", "pen*stock"]
VALUES = "/ /a /a/b /*.pdf$ /a* /a**b /$ a /b?x=1 /%61 http://x.example/a /index.html".split()
PATHS = "/ /a /a/b/c /x.pdf /b?x=1 /caf%C3%A9 /robots.txt /index.html /A".split()


def a_robots_txt(rng: random.Random) -> str:
    text = ""
    for _ in range(rng.randint(1, 14)):
        field = rng.choice(FIELDS)
        value = rng.choice(AGENTS if field.lower().startswith("user") else [*VALUES, ""])
        text += (
            field + rng.choice([": ", ":", " ", " : "]) + value + rng.choice(["\n", "\r\n", "\n\n"])
        )
    return text


def test_rules_chosen_for_us_say_what_the_whole_file_says() -> None:
    rng = random.Random(9309)
    for _ in range(2_000):
        text = a_robots_txt(rng)
        whole, ours = Protego.parse(text), rules_for(text.encode(), POLICY.user_agent)
        for path in PATHS:
            url = ORIGIN + path
            assert ours.allows(url) is whole.can_fetch(url, POLICY.user_agent), text


def test_two_sources_with_names_of_their_own_each_follow_their_rules() -> None:
    answer = rules("User-agent: penstock\nDisallow: /a\n\nUser-agent: other\nDisallow: /b")
    robots = Robots(FakeNetwork({ROBOTS: answer}), FakeClock())

    async def allowed(agent: str) -> list[bool]:
        policy = replace(POLICY, user_agent=agent)
        return [await robots.is_allowed(look_at(ORIGIN + path), policy) for path in ("/a", "/b")]

    assert asyncio.run(allowed("penstock/1.0")) == [False, True]
    assert asyncio.run(allowed("other/1.0")) == [True, False]


@pytest.mark.parametrize(
    "line",
    ["\n".join(f"Allow: /{n}" for n in range(MAX_RULES + 1)), "Allow: /" + "*a" * (MAX_STARS + 1)],
)
def test_a_file_with_more_rules_than_can_be_followed_closes_the_site(line: str) -> None:
    with pytest.raises(Disallowed, match="more than can be followed"):
        verdict(rules(STAR + line))
    assert verdict(rules("User-agent: other\n" + line)), "and those for others do not count"


def test_many_patterns_close_only_urls_that_take_long_to_match() -> None:
    answer = rules(STAR + "\n".join(f"Disallow: /*b{n}" for n in range(2_000)))
    assert verdict(answer, "/" + "a" * 900)
    with pytest.raises(Disallowed, match="so long a URL"):
        verdict(answer, "/" + "a" * 8000)


@in_loop
async def test_a_long_file_is_parsed_outside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    where: list[bool] = []

    def watched(body: bytes, agent: str) -> AgentRules:
        where.append(threading.current_thread() is threading.main_thread())
        return rules_for(body, agent)

    monkeypatch.setattr(robots_module, "rules_for", watched)
    for pages in (10, 2_000):
        network = FakeNetwork({ROBOTS: rules(STAR + "Disallow: /page\n" * pages)})
        assert not await Robots(network, FakeClock()).is_allowed(look_at(ORIGIN + "/page"), POLICY)
    assert where == [True, False]


@in_loop
async def test_rules_of_many_origins_are_held_in_bounded_memory_and_the_largest_go_first() -> None:
    large = "\n".join(f"Disallow: /{n:07d}" for n in range(9_000))
    fill = MAX_KNOWN_BYTES // rules_for((STAR + large).encode(), POLICY.user_agent).size
    origins = [f"https://{n}.example" for n in range(fill + 3)]
    answers: dict[str, Answer] = {f"{origin}/robots.txt": rules(STAR + large) for origin in origins}
    network = FakeNetwork({ROBOTS: rules(STAR + "Disallow: /a"), **answers})
    robots = Robots(network, FakeClock())
    await robots.is_allowed(look_at(ORIGIN + "/b"), POLICY)
    for origin in origins:
        await robots.is_allowed(look_at(f"{origin}/b"), POLICY)

    known = [origin for origin in origins if robots.is_known(look_at(origin), POLICY)]
    assert len(known) == fill
    assert known[-1] == origins[-1]
    assert robots.is_known(look_at(ORIGIN), POLICY), "who has few rules keeps them"


@pytest.mark.parametrize(
    "line", ["Disallow: /{n}", "Disallow: /*{n}*a*b", "Allow: /" + "a" * 300 + "{n}"]
)
def test_rules_take_no_more_memory_than_they_are_counted_for(line: str) -> None:
    body = (STAR + "\n".join(line.format(n=n) for n in range(1_000))).encode()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = rules_for(body, POLICY.user_agent)
    held.allows(ORIGIN + "/a")
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken <= held.size
