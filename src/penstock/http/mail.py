"""Mail by SMTP, for alerts: one message to one server, over TLS where there is any.

`smtp://USER:PASSWORD@HOST:PORT/?to=A,B&from=C` asks for STARTTLS, `smtps://` begins with TLS. A password goes
over TLS only, unless the server is this machine.
"""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from urllib.parse import parse_qs, unquote, urlsplit

PORTS = {"smtp": 587, "smtps": 465}
OWN_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST_SUBJECT = 200


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail is handed in, who signs in there, and whom it is for."""

    host: str
    port: int
    is_tls: bool
    to: tuple[str, ...]
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"


def mail_server(address: str) -> MailServer:
    """What an address such as `smtp://mail.example.com/?to=ops@example.com` says."""
    parts = urlsplit(address)
    named = parse_qs(parts.query)
    to = tuple(one.strip() for each in named.get("to", []) for one in each.split(","))
    user = unquote(parts.username or "")
    sender = (named.get("from") or [user if "@" in user else to[0]])[0]
    scheme = parts.scheme.lower()
    port = parts.port or PORTS[scheme]
    password = unquote(parts.password or "")
    return MailServer(parts.hostname or "", port, scheme == "smtps", to, sender, user, password)


def mail_message(
    server: MailServer, subject: str, text: str, message_id: str, now: float
) -> EmailMessage:
    """The same delivery has the same Message-ID each time, so that a receiver can tell."""
    message = EmailMessage()
    message["From"] = server.sender
    message["To"] = ", ".join(server.to)
    message["Subject"] = _one_line(subject)
    message["Date"] = formatdate(now)
    message["Message-ID"] = f"<{message_id}@penstock>"
    # So that nobody's absence is announced to Penstock.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    return message


def send_mail(server: MailServer, message: EmailMessage, timeout_s: float) -> str:
    """Hand in a message; answers with what was wrong, or '' when the server has accepted it.

    It has accepted it when it has for one of the receivers: those would get it again with every attempt.
    """
    try:
        with _connected(server, timeout_s) as client:
            refusal = _secured(client, server)
            if refusal:
                return refusal
            if server.user:
                client.login(server.user, server.password)
            client.send_message(message, server.sender, list(server.to))
            return ""
    except smtplib.SMTPRecipientsRefused as error:
        [(code, words), *_] = error.recipients.values()
        return f"the server refused the receivers: {code} {_text(words)}"
    except smtplib.SMTPResponseException as error:
        return f"it answered {error.smtp_code} {_text(error.smtp_error)}"
    except ssl.SSLError as error:
        return f"no TLS with {server.place} ({error.reason or error})"
    except (OSError, smtplib.SMTPException) as error:
        return f"no connection to {server.place} ({error})"


def _connected(server: MailServer, timeout_s: float) -> smtplib.SMTP:
    if server.is_tls:
        context = ssl.create_default_context()
        return _Client(server.host, server.port, timeout=timeout_s, context=context)
    return _PlainClient(server.host, server.port, timeout=timeout_s)


class _Farewell:
    """A message that was accepted stays accepted if the server hangs up instead of saying goodbye."""

    def __exit__(self, *error: object) -> None:
        try:
            self.quit()  # type: ignore[attr-defined]
        except (OSError, smtplib.SMTPException):
            self.close()  # type: ignore[attr-defined]


class _Client(_Farewell, smtplib.SMTP_SSL):
    pass


class _PlainClient(_Farewell, smtplib.SMTP):
    pass


def _secured(client: smtplib.SMTP, server: MailServer) -> str:
    """Begin TLS where the server offers it; answers with why the password can't be sent, else ''."""
    client.ehlo_or_helo_if_needed()
    if not server.is_tls and client.has_extn("starttls"):
        client.starttls(context=ssl.create_default_context())
        client.ehlo()
    elif not server.is_tls and server.user and server.host not in OWN_MACHINE:
        return f"{server.place} offers no TLS, and a password is not sent without it"
    return ""


def _one_line(text: str) -> str:
    """A header can't have line ends: what comes after one would be another header."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown[:LONGEST_SUBJECT]


def _text(words: bytes | str) -> str:
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else words
