"""Which addresses a request may connect to beyond public ones: pure, but for what is ours.

`allow_private: true` opens loopback and private networks. Link-local addresses and those where clouds
answer with credentials are opened by being named alone.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from functools import lru_cache

from penstock.http.addresses import Target, is_refused
from penstock.http.failures import AddressRefused
from penstock.http.reach import matches

AllowPrivate = bool | tuple[str, ...]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(each) for each in text.split())


_PRIVATE = _networks(
    "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 ::1/128 fc00::/7"
)
# Metadata services inside of private networks: Alibaba, AWS, Google, Scaleway.
_METADATA = _networks("100.100.100.200/32 fd00:ec2::/32 fd20:ce::/32 fd00:42::42/128")


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may reach: private networks or not, these networks, and what these hosts resolve to."""

    is_private: bool = False
    networks: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()

    def refuses(self, address: str, host: str) -> bool:
        """Whether a connection to this address, for this host, is refused."""
        ip = _parsed(address)
        if ip is None:
            return True
        if any(ip in network for network in self.networks):
            return False
        is_ours = is_own(address)
        if not is_ours and not is_refused(address):
            return False
        if not self.is_private and not any(matches(host, each) for each in self.hosts):
            return True
        is_metadata = any(ip in network for network in _METADATA)
        return is_metadata or not (is_ours or any(ip in network for network in _PRIVATE))

    def refuses_socket(self, address: str) -> bool:
        """The same when the socket is opened, where the host's name is not known any more."""
        return self.refuses(address, self.hosts[0].removeprefix("*") if self.hosts else "")

    def check_literal(self, target: Target) -> None:
        """Refuse a URL whose host is itself an address that may not be reached."""
        if target.is_literal and self.refuses(target.host, target.host):
            raise AddressRefused(not_public(target.host, target.host), target.text)


class Anywhere(Access):
    """For connections to a proxy: the configuration names it."""

    def refuses(self, address: str, host: str) -> bool:
        return False


@lru_cache(maxsize=256)
def access_of(allowed: AllowPrivate) -> Access:
    if isinstance(allowed, bool):
        return Access(allowed)
    networks, hosts = [], []
    for each in allowed:
        try:
            networks.append(ipaddress.ip_network(each, strict=False))
        except ValueError:
            hosts.append(each)
    return Access(False, tuple(networks), tuple(hosts))


def not_public(host: str, address: str) -> str:
    where = host if host == address else f"{host} resolves to {address}, which"
    return f"{where} is not a public address (fetch.allow_private permits it)"


def is_own(address: str) -> bool:
    """Whether this machine has the address: what listens there trusts it to be us. Nothing is sent."""
    ip = _parsed(address)
    if ip is None or ip.is_loopback:
        return ip is not None
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # From itself to itself is the way that the system chooses for its own addresses alone.
            probe.connect((str(ip), 9))
            return str(probe.getsockname()[0]) == str(ip)
    except OSError:
        return False


@lru_cache(maxsize=1024)
def _parsed(address: str) -> Address | None:
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip
