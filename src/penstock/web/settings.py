"""How a server is reached: where it listens, under which origins, and with which certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.app.verbs.roles import Role
from penstock.errors import UsageError
from penstock.web.origins import LOCAL_NAMES, Origin, Origins, is_loopback, origin_of

HOST, PORT = "127.0.0.1", 8787


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What `penstock web` was given. `origins` are those under which a proxy makes it known."""

    host: str = HOST
    port: int = PORT
    origins: tuple[Origin, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    max_body_bytes: int = 1_000_000
    # What MCP clients may do at most, whatever the role of their token.
    mcp_allow: Role = Role.VIEWER

    @property
    def is_secure(self) -> bool:
        """Whether the server itself speaks TLS."""
        return self.certificate is not None

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        return "https" if self.is_secure else "http"

    def known_origins(self) -> Origins:
        """Every origin under which a request may come in."""
        # Without TLS only this machine reaches it by an address; others come through the proxy, by its name.
        hosts = (*LOCAL_NAMES, self.host) if self.is_secure or self.is_local else LOCAL_NAMES
        return Origins(self.scheme, tuple(dict.fromkeys(hosts)), self.port, self.origins)

    @property
    def address(self) -> str:
        """Where a browser on this machine finds it."""
        return str(Origin(self.scheme, self.host.lower(), self.port))


def settings_of(
    host: str,
    port: int,
    origins: Sequence[str] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    mcp_allow: str = Role.VIEWER,
) -> WebSettings:
    """As they were written; a file that can't be read is refused now, not at the first request."""
    if (certificate is None) != (key is None):
        raise UsageError(
            "a certificate and its key are needed together", "--tls-certificate FILE --tls-key FILE"
        )
    for file in (certificate, key):
        if file is not None and not file.is_file():
            raise UsageError(f"there is no file {file}", code="no_file")
    found = tuple(map(origin_of, origins))
    return WebSettings(host, port, found, certificate, key, mcp_allow=Role(mcp_allow))
