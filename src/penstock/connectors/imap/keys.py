"""The keys of a source that reads a mailbox."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import Keys, Reads, Usual, about, between
from penstock.settings.document import Entry
from penstock.settings.kinds import Size, read_names, text_schema, texts_schema
from penstock.settings.secrets import MASK
from penstock.settings.section import Section, read_text

PORTS = {"tls": 993, "starttls": 143, "none": 143}


def _read_folders(entry: Entry, path: str) -> tuple[str, ...]:
    found: tuple[str, ...] = read_names(entry, path, "folders", read_text)
    return found


def _read_day(entry: Entry, path: str) -> str:
    text = str(entry.value)
    try:
        datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise entry.error(path, "must be a day such as 2026-01-31") from None
    return text


class OAuthKeys(Keys, frozen=True, kw_only=True):
    """A login by OAuth2 (XOAUTH2)."""

    token: Annotated[str, about('an access token: `"${TOKEN}"`'), Usual("asked for at `url`")] = ""
    url: Annotated[str, about("the address that tokens are asked for at")] = ""
    client_id: Annotated[str, about("the client that asks")] = ""
    client_secret: Annotated[str, about('its secret: `"${CLIENT_SECRET}"`')] = ""
    refresh_token: Annotated[
        str,
        about('`"${REFRESH_TOKEN}"`; without one, the client asks by its own credentials'),
    ] = ""
    scope: Annotated[str, about("scope of the token")] = ""

    @classmethod
    def refuse(cls, at: Section) -> None:
        if at.get("token") is None and at.get("url") is None:
            raise at.entry.error(at.path, "needs a token, or the url that tokens are asked for at")

    def __repr__(self) -> str:
        return f"OAuthKeys({MASK})"


class ImapKeys(ConnectorKeys, frozen=True, kw_only=True):
    """A mailbox."""

    host: Annotated[str, about("the IMAP server: `imap.example.com`")] = ""
    port: Annotated[
        int, between(0, 65535), about("its port"), Usual("993, or 143 without `tls: tls`")
    ] = 0
    tls: Annotated[
        Literal["tls", "starttls", "none"],
        about(
            "`tls` from the first byte, `starttls`, or `none`: that sends the password as it is, and needs "
            "`fetch.allow_private`"
        ),
    ] = "tls"
    user: Annotated[str, about("who logs in")] = ""
    password: Annotated[str, about('from a variable: `"${MAIL_PASSWORD}"`')] = ""
    oauth: Annotated[OAuthKeys | None, about("a login by OAuth2 instead of a password")] = None
    mailbox: Annotated[
        str,
        about("a Maildir on this machine, which is read in place of a server"),
        Usual("none"),
    ] = ""
    folders: Annotated[
        tuple[str, ...],
        Reads(_read_folders, texts_schema),
        about(
            'folders to read: names, patterns such as `"Lists/*"`, or uses such as `"\\\\Sent"`; `["*"]` for '
            "all, without views of other folders (`\\All`)"
        ),
    ] = ("INBOX",)
    exclude: Annotated[
        tuple[str, ...],
        Reads(_read_folders, texts_schema),
        about('folders that are left out, such as `["\\\\Junk", "\\\\Trash"]`'),
        Usual("none"),
    ] = ()
    since: Annotated[
        str,
        Reads(_read_day, text_schema),
        about("only messages that came on this day or later: `2026-01-31`"),
        Usual("all"),
    ] = ""
    max_bytes: Annotated[Size, about("larger messages are left out; the run notes how many")] = (
        16_000_000
    )
    attachments: Annotated[
        bool, about("also read the text of attachments: PDF, Office, HTML, CSV …")
    ] = True
    follow_flags: Annotated[
        bool,
        about("a message whose flags have changed, such as `\\Seen`, is read again"),
    ] = False

    @classmethod
    def refuse(cls, at: Section) -> None:
        if at.get("mailbox") is not None:
            if at.get("host") is not None:
                raise at.entry.error(at.path, "has a host or a mailbox, not both")
            return
        if at.get("host") is None:
            raise at.entry.error(at.path, "needs a host, or a mailbox on this machine")
        if at.get("user") is None:
            raise at.entry.error(at.path, "needs a user")
        if (at.get("password") is None) == (at.get("oauth") is None):
            raise at.entry.error(at.path, "needs a password or oauth, one of them")

    def __repr__(self) -> str:
        return f"ImapKeys({MASK})"

    @property
    def the_port(self) -> int:
        return self.port or PORTS[self.tls]

    @property
    def first_day(self) -> datetime | None:
        if not self.since:
            return None
        return datetime.strptime(self.since, "%Y-%m-%d").replace(tzinfo=UTC)
