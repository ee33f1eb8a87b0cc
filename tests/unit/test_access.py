"""Which addresses beyond public ones may be reached, and by what they are opened."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from penstock.errors import ConfigError
from penstock.http import access
from penstock.http.access import access_of, is_own
from penstock.http.failures import AddressRefused
from penstock.http.nat64 import WELL_KNOWN, Nat64
from penstock.http.network import AiohttpNetwork, Request
from penstock.settings import load_settings
from tests.hostile.loopback import Doors, in_loop
from tests.hostile.offline import FakeClock

PUBLIC = "93.184.216.34"
METADATA = """169.254.169.254 169.254.170.2 169.254.0.23 100.100.100.200 168.63.129.16 192.0.0.192
    fe80::a9fe:a9fe fd00:ec2::254 fd20:ce::254 fd00:42::42 ::ffff:169.254.169.254""".split()
PRIVATE = "127.0.0.1 10.1.2.3 172.20.0.1 192.168.1.1 100.64.0.1 ::1 fd12::1 ::ffff:10.0.0.1".split()


@pytest.mark.parametrize("address", METADATA)
def test_metadata_and_link_local_are_opened_by_their_own_name_alone(address: str) -> None:
    for allowed in (False, True, ("10.0.0.0/8", "fd00::/64", "intranet.example")):
        assert access_of(allowed).refuses(address, "intranet.example")
    bare = address.removeprefix("::ffff:")
    assert not access_of((bare,)).refuses(address, "any.example")


@pytest.mark.parametrize("address", PRIVATE)
def test_true_opens_loopback_and_private_networks(address: str) -> None:
    assert access_of(False).refuses(address, "shop.example")
    assert not access_of(True).refuses(address, "shop.example")


def test_a_list_opens_what_it_names_and_nothing_else() -> None:
    named = access_of(("10.2.0.0/16", "intranet.example", "*.corp.example"))
    assert not named.refuses("10.2.9.9", "any.example")
    assert named.refuses("10.3.0.1", "any.example")
    assert not named.refuses("10.3.0.1", "intranet.example")
    assert not named.refuses("192.168.0.7", "db.corp.example")
    assert named.refuses("192.168.0.7", "corp.example")
    assert named.refuses("127.0.0.1", "any.example")
    assert not named.refuses(PUBLIC, "any.example")


def test_an_address_of_this_machine_is_no_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_own("127.0.0.1")
    assert not is_own("192.0.2.1")
    monkeypatch.setattr(access, "is_own", lambda address: address == PUBLIC)
    assert access_of(False).refuses(PUBLIC, "shop.example")
    assert not access_of(False).refuses("1.1.1.1", "shop.example")
    assert not access_of(True).refuses(PUBLIC, "shop.example")
    assert not access_of((PUBLIC,)).refuses(PUBLIC, "shop.example")


def test_every_address_of_this_machine_is_known_as_its_own() -> None:
    found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
    own = {str(info[4][0]) for info in found}
    assert own
    assert {address for address in own if is_own(address)} == own


class Translating(AbstractResolver):
    """A network that has a NAT64 gateway with a prefix of its own, and a name that lies behind it."""

    def __init__(self, prefix: str, name: str) -> None:
        self.answers = {WELL_KNOWN: [prefix], "evil.example": [name]}
        self.lookups: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.lookups.append(host)
        return [
            ResolveResult(
                hostname=host, host=each, port=port, family=socket.AF_INET6, proto=0, flags=0
            )
            for each in self.answers[host]
        ]

    async def close(self) -> None:
        return None


# What the gateway answers for 192.0.0.170, and how it would lead to 127.0.0.1 and to a public address.
GATEWAYS = [
    ("2606:47aa::c000:aa", "2606:47aa::7f00:1", "2606:47aa::808:808"),
    ("2606:47aa:1:2:c0:0:aa00:0", "2606:47aa:1:2:7f:0:100:0", "2606:47aa:1:2:8:808:800:0"),
    ("2606:47aa:c000:aa::", "2606:47aa:7f00:1::", "2606:47aa:808:808::"),
]


@pytest.mark.parametrize(("prefix", "inside", "outside"), GATEWAYS)
@in_loop
async def test_a_gateway_of_this_network_leads_nowhere_that_is_refused(
    prefix: str, inside: str, outside: str
) -> None:
    for address, is_reached in ((inside, False), (outside, True)):
        doors, names = Doors(), Translating(prefix, address)
        network = AiohttpNetwork(names, doors)
        for url in ("http://evil.example/", f"http://[{address}]/"):
            with pytest.raises(Exception, match=r"connection|not a public"):
                await network.send(Request("GET", url, {}))
        await network.close()
        assert bool(doors.wanted) is is_reached
        assert names.lookups.count(WELL_KNOWN) == 1


@in_loop
async def test_a_network_without_a_gateway_has_ordinary_addresses() -> None:
    class NoSuchName(Translating):
        async def resolve(self, *_: object) -> list[ResolveResult]:
            raise OSError("no such name")

    nat64 = Nat64(NoSuchName("::", "::"), FakeClock())
    assert await nat64.behind("2606:4700:4700::7f00:1") is None
    assert await nat64.behind("127.0.0.1") is None


@in_loop
async def test_what_is_allowed_holds_for_redirects_and_sockets_too() -> None:
    doors = Doors()
    network = AiohttpNetwork(None, doors)
    for url in ("http://169.254.169.254/", "http://[fe80::1]/", "http://192.168.1.1/"):
        for allowed in (False, ("10.0.0.0/8",)):
            with pytest.raises(AddressRefused):
                await network.send(Request("GET", url, {}, allow_private=allowed))
    with pytest.raises(AddressRefused):
        await network.send(Request("GET", "http://169.254.169.254/", {}, allow_private=True))
    await network.close()
    assert doors.wanted == []


@pytest.mark.parametrize(
    "written", ["maybe", "10.0.0.0/99", "[10.0.0.0/99]", "['*']", "[db.internal:5432]", "['a b']"]
)
def test_what_is_neither_a_network_nor_a_host_is_refused(tmp_path: Path, written: str) -> None:
    source = f"{{pipeline: 'a:b', fetch: {{allow_private: {written}}}}}"
    (tmp_path / "penstock.yaml").write_text(f"project: p\nsources: {{a.com: {source}}}\n")
    with pytest.raises(ConfigError, match="allow_private"):
        load_settings(tmp_path, environ={})
