"""One IMAP connection, as imapclient speaks it. Every call blocks: it belongs into a thread.

Folders are opened with EXAMINE and messages read with BODY.PEEK, so the server marks nothing as read. No
answer is larger than what the caller allows for it, whatever the server says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError
from imapclient.imap4 import IMAP4WithTimeout
from imapclient.response_parser import parse_fetch_response

from penstock.connectors.imap.fetched import read_fetched
from penstock.connectors.imap.folders import Folder, FolderState, folder_of
from penstock.jobs.failures import AuthFailed, BadData, Permanent, Transient

Answer = TypeVar("Answer")
# What any command may bring besides the messages that it asks for.
SMALL_ANSWER = 1_000_000
# A message's own line in an answer of flags and sizes.
LISTED_BYTES = 2_000
MOST_FOLDERS_BYTES = 20_000_000
_CODE = re.compile(r"\[([A-Z-]{3,40})[\] ]")
_BUSY = re.compile(
    r"too many|overload|rate limit|throttl|bandwidth|try again|temporarily|maximum number",
    re.IGNORECASE,
)
_THROTTLED = frozenset({"THROTTLED", "LIMIT", "OVERQUOTA", "UNAVAILABLE", "INUSE"})
_RANGE = re.compile(rb"(\d{1,10})(?::(\d{1,10}))?")


class Busy(Exception):
    """The server asks to be left alone for a while."""


class FolderGone(Exception):
    """There is no such folder any more."""


class TooMuch(BadData):
    """The server sends more than it was asked for."""


class _Wire(IMAP4WithTimeout):  # type: ignore[misc]
    """imaplib over a socket that was opened elsewhere; counts what comes, and stops at a limit."""

    def __init__(self, opened: Any, host: str, port: int) -> None:
        self._opened = opened
        self.received = 0
        self.allowed = SMALL_ANSWER
        super().__init__(host, port, None)

    def _create_socket(self, timeout: float | None = None) -> Any:
        return self._opened

    def read(self, size: int) -> bytes:
        self._take(size)
        found: bytes = super().read(size)
        return found

    def readline(self) -> bytes:
        line: bytes = super().readline()
        self._take(len(line))
        return line

    def _take(self, size: int) -> None:
        self.received += size
        if self.received > self.allowed:
            raise TooMuch("the server sends more than it was asked for", cause="too much")


class _Client(IMAPClient):  # type: ignore[misc]
    """imapclient over such a wire."""

    def __init__(self, opened: Any, host: str, port: int) -> None:
        self._wire_of = lambda: _Wire(opened, host, port)
        super().__init__(host, port, use_uid=True, ssl=False)
        # imapclient asks for the log of all that comes: imaplib would write each message out for it.
        self._imap.debug = 0

    def _create_IMAP4(self) -> _Wire:  # noqa: N802
        return self._wire_of()  # type: ignore[no-untyped-call]


class Session:
    """A connection that somebody has logged in on, and the folder that it has open."""

    def __init__(self, opened: Any, host: str, port: int) -> None:
        self._host = host
        self._opened = opened
        self._client: Any = None
        self._port = port
        self.folder: bytes | None = None
        self.state: FolderState | None = None
        self.has_vanished = False

    @property
    def received(self) -> int:
        """Bytes that came so far."""
        return 0 if self._client is None else self._client._imap.received

    def greet(self) -> None:
        """Read the server's greeting."""
        self._client = self._told(lambda: _Client(self._opened, self._host, self._port))
        self._client.folder_encode = False

    def begin_tls(self, context: Any) -> None:
        self._told(lambda: self._client.starttls(context))
        self._opened = self._client._imap.sock

    def login(self, user: str, password: str) -> None:
        self._told(lambda: self._client.login(user, password))
        self._enable()

    def login_with_token(self, user: str, token: str) -> None:
        self._told(lambda: self._client.oauth2_login(user, token))
        self._enable()

    def _enable(self) -> None:
        """QRESYNC, where it is offered: the server tells then which messages are gone."""
        capabilities = self._told(self._client.capabilities)
        if b"QRESYNC" in capabilities and b"ENABLE" in capabilities:
            self.has_vanished = b"QRESYNC" in self._told(lambda: self._client.enable("QRESYNC"))

    def folders(self) -> list[Folder]:
        found = self._told(self._client.list_folders, MOST_FOLDERS_BYTES)
        return [folder_of(flags, delimiter, raw) for flags, delimiter, raw in found]

    def status(self, raw: bytes) -> FolderState:
        """The state of a folder, without opening it."""
        if raw == self.folder:
            # Of the folder that it has open, a server answers what it has told before.
            return self.examine(raw)
        wanted = ["UIDVALIDITY", "UIDNEXT", "MESSAGES"]
        if b"CONDSTORE" in self._told(self._client.capabilities):
            wanted.append("HIGHESTMODSEQ")
        return self._told(lambda: _state(self._client.folder_status(raw, wanted), b"MESSAGES"))

    def examine(self, raw: bytes) -> FolderState:
        """Open a folder to be read, and nothing else."""
        self.folder = None
        select = self._client.select_folder
        state = self._told(lambda: _state(select(raw, readonly=True), b"EXISTS"))
        self.folder, self.state = raw, state
        return state

    def uids_since(self, day: datetime) -> list[int]:
        return list(self._told(lambda: self._client.search(["SINCE", day.date()]), 20_000_000))

    def listed(
        self, uids: str, count: int, modseq: int | None = None
    ) -> tuple[dict[int, Any], Any]:
        """Size, flags and date of messages by UID, and the UIDs that are gone, where the server tells them.

        With `modseq`, of those alone that have changed since.
        """
        words = "(FLAGS RFC822.SIZE INTERNALDATE)"
        if modseq is not None:
            words += f" (CHANGEDSINCE {modseq}{' VANISHED' if self.has_vanished else ''})"
        found = self._fetched(uids, words, SMALL_ANSWER + count * LISTED_BYTES)
        return found, _uids(self._untagged("VANISHED"))

    def messages(self, uids: Sequence[int], allowed: int) -> dict[int, Any]:
        """Whole messages by UID, with flags and date. None of them is marked as read."""
        named = ",".join(map(str, uids))
        return self._fetched(named, "(BODY.PEEK[] FLAGS INTERNALDATE)", allowed)

    @property
    def can_idle(self) -> bool:
        return b"IDLE" in self._told(self._client.capabilities)

    def begin_idle(self, raw: bytes) -> None:
        """Have the server say what changes in a folder, until `end_idle`."""
        self.examine(raw)
        self._told(self._client.idle)

    def news(self, timeout_s: float) -> list[bytes]:
        """What has changed, by the server's words (EXISTS, EXPUNGE …), as soon as there is something.

        Empty when the time is over; ConnectionResetError if nothing will come any more.
        """
        began, waits_s = time.monotonic(), self._opened.gettimeout()
        try:
            found = self._told(lambda: self._client.idle_check(timeout_s))
        finally:
            self._opened.settimeout(waits_s)
        words = [part for each in found for part in each if isinstance(part, bytes)]
        # At the end of a connection there is always something to read, and it is nothing.
        is_cut = not found and time.monotonic() - began < timeout_s / 2
        if is_cut or b"BYE" in words:
            raise ConnectionResetError("the server closed the connection")
        return words

    def end_idle(self) -> None:
        self._told(self._client.idle_done)

    def close(self) -> None:
        """Without a word: whatever state the connection is in."""
        if self._client is None:
            self._opened.close()
            return
        with suppress(OSError):  # it may be closed at the other end
            self._client.shutdown()

    def _fetched(self, uids: str, words: str, allowed: int) -> dict[int, Any]:
        def fetch() -> dict[int, Any]:
            wire = self._client._imap
            wire.untagged_responses.pop("VANISHED", None)
            kind, said = wire.uid("FETCH", uids, words)
            if kind != "OK":
                raise IMAPClientError(f"fetch failed: {said[0]!r}")
            found = read_fetched(said)
            if found is not None:
                return found
            return dict(parse_fetch_response(said, normalise_times=False, uid_is_key=True))

        return self._told(fetch, allowed)

    def _untagged(self, kind: str) -> list[bytes]:
        found: list[bytes] = self._client._imap.untagged_responses.pop(kind, [])
        return found

    def _told(self, call: Callable[[], Answer], allowed: int = SMALL_ANSWER) -> Answer:
        """What the call answers; errors of the protocol as those of our own, in our words."""
        if self._client is not None:
            self._client._imap.allowed = self.received + allowed
        try:
            return call()
        except (IMAPClientError, IMAPClientAbortError) as error:
            raise _failure(error, self._host) from None
        except OSError:
            raise  # some errors of TLS are a ValueError, too
        except (ValueError, TypeError, KeyError, IndexError) as error:
            name = type(error).__name__
            raise Transient(f"{self._host} does not speak IMAP as it should ({name})") from None


def _failure(error: Exception, host: str) -> Exception:
    """By the code of the response; its text is the server's, and is not repeated."""
    said = str(error)
    found = _CODE.search(said)
    code = found[1] if found else ""
    if code in _THROTTLED or (not code and _BUSY.search(said)):
        return Busy(code or "overload")
    is_cut = isinstance(error.__context__ or error, IMAPClientAbortError)
    if isinstance(error, LoginError) and not is_cut:
        words = f"{host} refuses the login{f' [{code}]' if code else ''}: check user and password"
        return AuthFailed(words, cause="login refused")
    if code in (
        "AUTHENTICATIONFAILED",
        "AUTHORIZATIONFAILED",
        "EXPIRED",
        "PRIVACYREQUIRED",
        "NOPERM",
    ):
        return AuthFailed(f"{host} refuses [{code}]", cause=code)
    if is_cut:
        return ConnectionResetError("the server closed the connection")
    if code in ("NONEXISTENT", "TRYCREATE") or "doesn't exist" in said:
        return FolderGone()
    if code or "NO" in said or "BAD" in said or "failed" in said:
        return Permanent(
            f"{host} refuses a command{f' [{code}]' if code else ''}", cause=code or "NO"
        )
    return Transient(f"{host} does not speak IMAP as it should")


def _state(found: dict[bytes, Any], messages: bytes) -> FolderState:
    return FolderState(
        int(found[b"UIDVALIDITY"]),
        int(found.get(b"UIDNEXT") or 0),
        int(found[messages]),
        int(found.get(b"HIGHESTMODSEQ") or 0),
    )


def _uids(lines: Iterable[bytes]) -> list[tuple[int, int]]:
    """The ranges of `VANISHED (EARLIER) 41,43:116`."""
    found = []
    for line in lines:
        for first, last in _RANGE.findall(line):
            found.append((int(first), int(last or first)))
    return found


def moment(found: Any) -> str:
    """The date at which a message came, in UTC."""
    if not isinstance(found, datetime):
        return ""
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
