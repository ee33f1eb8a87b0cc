"""What kind of failure an error is: one table for errors of Python, of libraries, of HTTP, and declared ones.

Errors of libraries are known by name, so that none of them has to be installed, or imported.
"""

from __future__ import annotations

import builtins
import errno
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

Kind = Literal["transient", "throttled", "permanent", "auth", "budget", "data", "unknown"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# Trying the same again can't help: no further try is spent on these.
FAIL_FAST: Final = ("permanent", "auth", "budget", "data")
# A job under which workers died: nobody raised anything.
POISON: Final = "poison"

# Types that a pipeline has declared to be of a kind; the first that fits counts.
Declared: TypeAlias = tuple[tuple[Kind, tuple[type[BaseException], ...]], ...]

DEEPEST = 5
_BUILTIN = builtins.__name__


class DeclaredFailure(Exception):
    """A step says itself what kind of failure this is, and if it wants, what it has in common with others."""

    kind: Kind = "unknown"

    def __init__(self, message: str = "", *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = str(cause)


class Transient(DeclaredFailure):
    """Raise in a step: it may pass by itself, so the job is tried again as its retry class says."""

    kind = "transient"


class Permanent(DeclaredFailure):
    """Raise in a step: trying again can't help; the job is quarantined at once."""

    kind = "permanent"


class AuthFailed(DeclaredFailure):
    """Raise in a step: we are not let in, and will not be before somebody changes the credentials."""

    kind = "auth"


class BadData(DeclaredFailure):
    """Raise in a step: the input is not what it should be; the job is quarantined at once, with its input."""

    kind = "data"


_ERRNOS: dict[int, Kind] = {
    **dict.fromkeys(
        (
            *(errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.EIO, errno.ENOMEM, errno.EPIPE),
            *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ESTALE),
            *(errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED),
            *(errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN),
            *(errno.ENETRESET, errno.ENOTCONN, errno.EADDRNOTAVAIL),
        ),
        "transient",
    ),
    **dict.fromkeys(
        (
            *(errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR),
            *(errno.EEXIST, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.EXDEV),
            *(errno.EINVAL, errno.ENOTEMPTY, errno.EFBIG),
        ),
        "permanent",
    ),
}

# Where several statuses of a hundred differ from the rest of it.
_STATUSES: dict[int, Kind] = {
    **dict.fromkeys((401, 403, 407, 511), "auth"),
    402: "budget",
    429: "throttled",
    **dict.fromkeys((408, 409, 421, 423, 424, 425), "transient"),
    **dict.fromkeys((501, 505, 506, 510), "permanent"),
}

_TYPES: dict[str, Kind] = {
    **dict.fromkeys(
        (
            *("builtins.TimeoutError", "builtins.ConnectionError", "builtins.EOFError"),
            *("builtins.BlockingIOError", "builtins.InterruptedError", "builtins.MemoryError"),
            *("asyncio.exceptions.IncompleteReadError", "concurrent.futures._base.TimeoutError"),
            *("concurrent.futures.process.BrokenProcessPool", "socket.gaierror", "socket.herror"),
            *("ssl.SSLError", "http.client.HTTPException", "queue.Full", "queue.Empty"),
            *("imaplib.IMAP4.abort", "smtplib.SMTPServerDisconnected", "ftplib.error_temp"),
            *("sqlite3.OperationalError", "apsw.BusyError", "apsw.LockedError"),
            *(
                "psycopg.OperationalError",
                "psycopg2.OperationalError",
                "asyncpg.exceptions.PostgresConnectionError",
            ),
            *(
                "aiohttp.client_exceptions.ClientConnectionError",
                "aiohttp.client_exceptions.ClientPayloadError",
            ),
            *("requests.exceptions.ConnectionError", "requests.exceptions.Timeout"),
            *("requests.exceptions.ChunkedEncodingError", "urllib3.exceptions.HTTPError"),
            *("httpx.TransportError", "httpcore.NetworkError", "httpcore.TimeoutException"),
            *(
                "botocore.exceptions.EndpointConnectionError",
                "botocore.exceptions.ReadTimeoutError",
            ),
        ),
        "transient",
    ),
    **dict.fromkeys(
        (
            *("builtins.ValueError", "builtins.LookupError", "builtins.ArithmeticError"),
            *("builtins.TypeError", "builtins.AttributeError", "builtins.AssertionError"),
            *(
                "xml.etree.ElementTree.ParseError",
                "xml.sax._exceptions.SAXException",
                "csv.Error",
                "_csv.Error",
            ),
            *(
                "struct.error",
                "zlib.error",
                "gzip.BadGzipFile",
                "zipfile.BadZipFile",
                "tarfile.TarError",
            ),
            *("_lzma.LZMAError", "email.errors.MessageError", "yaml.error.YAMLError"),
            *("msgspec.MsgspecError", "msgspec.ValidationError", "msgspec.DecodeError"),
            *("lxml.etree.LxmlError", "jsonschema.exceptions.ValidationError"),
            *(
                "sqlite3.IntegrityError",
                "sqlite3.DataError",
                "psycopg.IntegrityError",
                "psycopg.DataError",
            ),
            *("requests.exceptions.JSONDecodeError", "requests.exceptions.InvalidJSONError"),
        ),
        "data",
    ),
    **dict.fromkeys(
        (
            *("builtins.NameError", "builtins.ImportError", "builtins.SyntaxError"),
            *(
                "builtins.NotImplementedError",
                "builtins.RecursionError",
                "builtins.FileNotFoundError",
            ),
            *(
                "builtins.PermissionError",
                "builtins.IsADirectoryError",
                "builtins.NotADirectoryError",
            ),
            *("ssl.SSLCertVerificationError", "ssl.CertificateError", "ftplib.error_perm"),
            *("smtplib.SMTPRecipientsRefused", "smtplib.SMTPSenderRefused"),
            *("requests.exceptions.InvalidURL", "requests.exceptions.MissingSchema"),
            *(
                "requests.exceptions.TooManyRedirects",
                "httpx.InvalidURL",
                "httpx.UnsupportedProtocol",
            ),
            *("aiohttp.client_exceptions.InvalidURL", "aiohttp.client_exceptions.TooManyRedirects"),
            *("sqlite3.ProgrammingError", "psycopg.ProgrammingError"),
        ),
        "permanent",
    ),
    **dict.fromkeys(
        (
            *("smtplib.SMTPAuthenticationError", "botocore.exceptions.NoCredentialsError"),
            *("psycopg.errors.InvalidPassword", "netrc.NetrcParseError"),
        ),
        "auth",
    ),
}

# What libraries call such errors, whoever wrote them.
_NAMES: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"RateLimit|TooManyRequests|Throttl|SlowDown"), "throttled"),
    (re.compile(r"Quota|BudgetExceeded|BudgetExhausted|InsufficientFunds"), "budget"),
    (
        re.compile(
            r"Authentication|Authoriz|Unauthorized|Forbidden|AuthError|Credential|TokenExpired|LoginFailed"
        ),
        "auth",
    ),
    (re.compile(r"ValidationError|ParseError|DecodeError|MalformedError"), "data"),
    (re.compile(r"Timeout|TimedOut|ConnectionError|Unavailable|Disconnected"), "transient"),
)


def classify(error: BaseException, declared: Declared = ()) -> Kind:
    """The kind of failure this error stands for. What a pipeline declares comes before what we know."""
    return _kind(error, declared, DEEPEST)


def of_status(status: int) -> Kind:
    """What an HTTP status says of a request that failed."""
    known = _STATUSES.get(status)
    if known is not None:
        return known
    if 500 <= status <= 599:
        return "transient"
    return "permanent" if 300 <= status <= 499 else "unknown"


def _kind(error: BaseException, declared: Declared, depth: int) -> Kind:
    for kind, types in declared:
        if isinstance(error, types):
            return kind
    if isinstance(error, DeclaredFailure):
        return error.kind
    status = status_of(error)
    found = of_status(status) if status is not None else _by_type(error)
    if found is not None:
        return found
    # Wrapped by somebody: what it was made from says more.
    inner = attribute_of(error, "reason")
    if not isinstance(inner, BaseException):
        inner = error.__cause__
    return _kind(inner, declared, depth - 1) if inner is not None and depth > 0 else "unknown"


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error of whatever client carries."""
    for holder in (error, attribute_of(error, "response")):
        for name in ("status", "status_code", "code"):
            value = attribute_of(holder, name)
            if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599:
                return value
    return None


def attribute_of(holder: object, name: str) -> Any:
    """What an error of somebody else's holds under a name; None where even asking fails."""
    try:
        return getattr(holder, name, None)
    except Exception:
        # A property may raise anything, and to be asked is no part of the step's work.
        return None


def _by_type(error: BaseException) -> Kind | None:
    for each in type(error).__mro__:
        if each is OSError:
            number = attribute_of(error, "errno")
            return _ERRNOS.get(number) if isinstance(number, int) else None
        kind = _TYPES.get(f"{each.__module__}.{each.__qualname__}")
        if kind is not None:
            return kind
        if each.__module__ != _BUILTIN:
            for pattern, named in _NAMES:
                if pattern.search(each.__name__):
                    return named
    return None


def check_declared(errors: object) -> Declared:
    """Errors as a pipeline or a step declares them: kinds to types. Raises ValueError in words."""
    if errors is None:
        return ()
    if not isinstance(errors, Mapping):
        raise ValueError("errors= is a mapping like {'transient': (MyError,)}")
    found: list[tuple[Kind, tuple[type[BaseException], ...]]] = []
    for kind, types in errors.items():
        if kind not in KINDS:
            raise ValueError(f"errors=: there is no kind {kind!r}; known: {', '.join(KINDS)}")
        given = types if isinstance(types, (tuple, list)) else (types,)
        if not all(isinstance(each, type) and issubclass(each, BaseException) for each in given):
            raise ValueError(f"errors=: {kind!r} takes types of exceptions, like (MyError,)")
        found.append((kind, tuple(given)))
    return tuple(found)
