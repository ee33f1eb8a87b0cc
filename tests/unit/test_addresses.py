"""Addresses and URLs: what may be asked for, and what a URL may show of itself."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.http.access import Access
from penstock.http.addresses import MAX_URL, host_key, is_refused, look_at
from penstock.http.failures import (
    AddressRefused,
    safe_url,
)

REFUSED = """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1
    127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1
    172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255
    198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
    255.255.255.255
    :: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:8.8.8.8
    ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::127.0.0.1 64:ff9b::808:808 64:ff9b:1::1 100::1
    2001::1 2001:0:7f00:1:: 2001:db8::1 2002:7f00:1:: 2002:a00:1::1 2002:808:808::1 3fff::1
    161.26.0.6 166.8.0.1 166.11.255.255 199.36.153.4 199.36.153.11 2600:2d00:2:1000::1
    2600:2d00:2:2000::1 2606:4700:1:2:0:5efe:10.0.0.1 2606:4700:1:2:200:5efe:7f00:1
    4000::1 5f00::1 fc00::1 fd00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1
""".split()
PUBLIC = """
    1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1
    168.63.129.17 169.253.255.255 172.15.255.255 172.32.0.1 192.0.1.1 198.17.255.255 198.20.0.1
    223.255.255.255 2606:4700:4700::1111 2a00:1450:4001::200e 2001:4860:4860::8888
""".split()
NO_URL = [
    "",
    "example.com",
    "//example.com/a",
    "/a",
    "http://",
    "http:///a",
    "http://?a",
    "http:example.com",
    "https://:443/",
    "http://exa mple.com/",
    "http://exa%6dple.com/",
    "http://127.0.0.1%00.example.com/",
    "http://%31%32%37.0.0.1/",
    "http://example.com\\@127.0.0.1/",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:port/",
    "http://a..b/",
    "http://.example.com/",
    "http://[::1/",
    "http://[fe80::1%25eth0]/",
    "http://[::1%eth0]/",
    "http://exa\x00mple.com/",
    "http://user@example.com/",
    "http://user:password@example.com/",
    "http://:@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://" + "a" * 300 + "/",
    "http://example.com/" + "a" * MAX_URL,
]
ODD_NUMBERS = [
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7F.0.0.1/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1./",
    "http://127.0.0.01/",
    "http://127.0.0.0x1/",
    "http://0/",
    "http://0x/",
    "http://00000/",
    "http://256.0.0.1/",
    "http://1.2.3.4.5/",
    "http://example.0x7f/",
    "http://example.127/",
    "http://4294967297/",
    "http://１２７。１/",
]
SCHEMES = """
    file:///etc/passwd data:text/plain,x ftp://example.com/a s3://bucket/a gopher://example.com/
    dict://example.com:11211/ ldap://example.com/ javascript:alert(1) about:blank jar:http://a!/b
    ws://example.com/ blob:http://example.com/x view-source:http://example.com/ unix:///run/x
    HTTPS+unix://x/ php://filter
""".split()


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_not_an_ordinary_public_address_is_refused(address: str) -> None:
    assert is_refused(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_not_refused(address: str) -> None:
    assert not is_refused(address)


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f.0.0.1", "1.2.3.4.5", "8.8.8.8 "])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert is_refused(text)


@given(st.ip_addresses())
def test_nothing_private_by_the_standard_library_passes(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert is_refused(str(ip)) or (ip.is_global and not ip.is_multicast)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_inside_an_ipv6_one_never_passes(ip: ipaddress.IPv4Address) -> None:
    number = int(ip)
    for inside in (0xFFFF << 32, 0, 0x64FF9B << 96, 0xFFFF << 48):
        assert is_refused(str(ipaddress.IPv6Address(inside | number)))
    assert is_refused(str(ipaddress.IPv6Address(0x2002 << 112 | number << 80)))


@pytest.mark.parametrize("url", NO_URL + ODD_NUMBERS + SCHEMES)
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        look_at(url)
    assert refused.value.is_permanent


@pytest.mark.parametrize(
    "url",
    [
        "http://127。0。0。1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://１２７.0.0.1/",
        "http://127.0.0.1\t/",
        "http://[::ffff:127.0.0.1]/",
        "http://[0:0:0:0:0:0:0:1]/",
    ],
)
def test_an_address_in_disguise_is_seen_as_what_it_is(url: str) -> None:
    with pytest.raises(AddressRefused):
        Access().check_literal(look_at(url))


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://Example.COM/a", "example.com"),
        ("http://example.com:80/", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("https://example.com:80/", "example.com:80"),
        ("http://127.0.0.1:8000/", "127.0.0.1:8000"),
        ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
    ],
)
def test_a_host_is_known_by_name_and_unusual_port(url: str, key: str) -> None:
    assert host_key(url) == key


def test_the_fragment_stays_at_home() -> None:
    assert look_at("https://example.com/a?b=1#c").text == "https://example.com/a?b=1"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:hunter2@example.com/a", "https://example.com/a"),
        ("https://user:hun@ter2@example.com/a", "https://example.com/a"),
        ("https://user:hunter2/@example.com/", "https://***"),
        ("https://a/b?page=2&token=hunter2", "https://a/b?page=2&token=***"),
        ("https://a/b?X-Amz-Signature=hunter2", "https://a/b?X-Amz-Signature=***"),
        ("https://a/b?q=" + "hunter2" * 5, "https://a/b?q=***"),
        ("https://a/b?" + "hunter2" * 5, "https://a/b?***"),
        ("https://a/b#access_token=hunter2", "https://a/b"),
        ("https://a/b\r\nInjected: 1", "https://a/bInjected:1"),
        ("https://[::1]:80/a?page=2", "https://[::1]:80/a?page=2"),
    ],
)
def test_a_shown_url_has_no_credentials_and_no_second_line(url: str, shown: str) -> None:
    assert safe_url(url) == shown


@given(st.text(max_size=50))
def test_any_text_can_be_shown_as_a_url(text: str) -> None:
    assert "\n" not in safe_url(text)
    assert len(safe_url("http://a/" + "b" * 9999)) < 400
