"""Kinds of failures: one table, and what each of them leads to."""

from __future__ import annotations

import asyncio
import csv
import email.errors
import errno
import ftplib
import gzip
import http.client
import imaplib
import json
import random
import smtplib
import socket
import sqlite3
import ssl
import struct
import urllib.error
import xml.etree.ElementTree as Xml
import zipfile
import zlib
from decimal import InvalidOperation
from email.message import Message

import aiohttp
import msgspec
import psycopg
import pytest

import penstock
from penstock import AuthFailed, BadData, FetchError, Permanent, Transient
from penstock.engine.worker.redaction import redacted
from penstock.errors import PipelineError
from penstock.http.failures import (
    AddressRefused,
    Disallowed,
    HostClosed,
    Paced,
    RobotsUnreachable,
)
from penstock.jobs.failures import FAIL_FAST, KINDS, Declared, check_declared, classify, of_status
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Failed, Skipped, Snoozed, Throttled
from penstock.jobs.retry import (
    RETRY_CLASSES,
    RetryClass,
    choose_retry,
    retry_classes,
    settle,
)
from penstock.pipeline.error_outcome import outcome_of, timed_out
from penstock.pipeline.step import DataError
from penstock.settings import RetryChoice


class Answer:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class ClientError(Exception):
    """As requests and httpx have them: the status is the answer's."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.response = Answer(status)


class RateLimitError(Exception): ...


class QuotaExceeded(Exception): ...


class LoginForbidden(Exception): ...


class ShopError(Exception): ...


class ShopTimeout(ShopError): ...


def undecodable() -> BaseException:
    try:
        json.loads("{")
    except ValueError as error:
        return error
    raise AssertionError


def wrapped(inner: BaseException) -> ShopError:
    error = ShopError("it went wrong")
    error.__cause__ = inner
    return error


def http_error(code: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("https://a.com/", code, "no", Message(), None)


CASES: list[tuple[BaseException, str]] = [
    # Time and connections.
    (TimeoutError(), "transient"),
    (ConnectionResetError(), "transient"),
    (ConnectionRefusedError(), "transient"),
    (BrokenPipeError(), "transient"),
    (asyncio.IncompleteReadError(b"", 5), "transient"),
    (EOFError(), "transient"),
    (socket.gaierror(socket.EAI_AGAIN, "try again"), "transient"),
    (http.client.RemoteDisconnected("gone"), "transient"),
    (http.client.IncompleteRead(b""), "transient"),
    (aiohttp.ServerDisconnectedError(), "transient"),
    (aiohttp.ClientPayloadError(), "transient"),
    (urllib.error.URLError(ConnectionRefusedError()), "transient"),
    (imaplib.IMAP4.abort(), "transient"),
    (smtplib.SMTPServerDisconnected(), "transient"),
    (ftplib.error_temp(), "transient"),  # noqa: S321  an error, not a connection
    (ssl.SSLError(1, "handshake"), "transient"),
    # The machine.
    (MemoryError(), "transient"),
    (OSError(errno.ENOSPC, "no space"), "transient"),
    (OSError(errno.EMFILE, "too many files"), "transient"),
    (OSError(errno.EHOSTUNREACH, "no route"), "transient"),
    (OSError(errno.ENAMETOOLONG, "too long"), "permanent"),
    (OSError(errno.EROFS, "read-only"), "permanent"),
    (FileNotFoundError(), "permanent"),
    (PermissionError(), "permanent"),
    (IsADirectoryError(), "permanent"),
    (OSError("nobody knows"), "unknown"),
    (sqlite3.OperationalError("database is locked"), "transient"),
    (psycopg.OperationalError("gone"), "transient"),
    (psycopg.ProgrammingError("no such column"), "permanent"),
    # Statuses, in whatever client's error.
    (ClientError(500), "transient"),
    (ClientError(502), "transient"),
    (ClientError(408), "transient"),
    (ClientError(429), "throttled"),
    (ClientError(404), "permanent"),
    (ClientError(410), "permanent"),
    (ClientError(501), "permanent"),
    (ClientError(401), "auth"),
    (ClientError(403), "auth"),
    (ClientError(407), "auth"),
    (ClientError(402), "budget"),
    (http_error(503), "transient"),
    (http_error(404), "permanent"),
    # What libraries call theirs.
    (RateLimitError(), "throttled"),
    (QuotaExceeded(), "budget"),
    (LoginForbidden(), "auth"),
    (ShopTimeout(), "transient"),
    (smtplib.SMTPAuthenticationError(535, b"no"), "auth"),
    (ssl.SSLCertVerificationError("expired"), "permanent"),
    (ftplib.error_perm("550"), "permanent"),  # noqa: S321
    # Data.
    (undecodable(), "data"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), "data"),
    (KeyError("price"), "data"),
    (IndexError(), "data"),
    (ValueError("price"), "data"),
    (TypeError("None"), "data"),
    (AttributeError("None has no text"), "data"),
    (ZeroDivisionError(), "data"),
    (InvalidOperation(), "data"),
    (AssertionError(), "data"),
    (Xml.ParseError("no root"), "data"),
    (csv.Error("line"), "data"),
    (struct.error("short"), "data"),
    (zlib.error("header"), "data"),
    (gzip.BadGzipFile("magic"), "data"),
    (zipfile.BadZipFile("magic"), "data"),
    (email.errors.MessageError(), "data"),
    (msgspec.ValidationError("int"), "data"),
    # Code that can't run.
    (NameError("prise"), "permanent"),
    (ImportError("lxml"), "permanent"),
    (NotImplementedError(), "permanent"),
    (RecursionError(), "permanent"),
    # Declared.
    (Transient(), "transient"),
    (Permanent("gone"), "permanent"),
    (AuthFailed("token"), "auth"),
    (BadData("no price"), "data"),
    # Made from something that says more.
    (wrapped(ConnectionResetError()), "transient"),
    (wrapped(wrapped(KeyError("x"))), "data"),
    # Nobody knows.
    (RuntimeError("what now"), "unknown"),
    (Exception(), "unknown"),
    (ShopError(), "unknown"),
    (KeyboardInterrupt(), "unknown"),
    (SystemExit(3), "unknown"),
    (asyncio.CancelledError(), "unknown"),
]


@pytest.mark.parametrize(
    ("error", "kind"), CASES, ids=[f"{type(e).__name__}-{n}" for n, (e, _) in enumerate(CASES)]
)
def test_every_error_has_its_kind(error: BaseException, kind: str) -> None:
    assert classify(error) == kind


def test_table_is_long_enough_and_knows_every_kind() -> None:
    assert len(CASES) >= 40
    assert {kind for _, kind in CASES} == set(KINDS)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((code, "transient") for code in (408, 409, 425, 500, 502, 503, 504, 520, 599)),
        *((code, "permanent") for code in (304, 400, 404, 405, 410, 413, 415, 422, 451, 501, 505)),
        *((code, "auth") for code in (401, 403, 407, 511)),
        (402, "budget"), (429, "throttled"), (200, "unknown"),
    ],
)  # fmt: skip
def test_every_status_has_its_kind(status: int, kind: str) -> None:
    assert of_status(status) == kind


class Grudging(OSError):
    """An error that does not want to be asked."""

    @property
    def response(self) -> object:
        raise RuntimeError("don't ask")

    status = reason = code = retry_after = errno = response  # type: ignore[assignment]


def test_error_that_can_not_be_asked_is_still_only_a_failure() -> None:
    outcome = outcome_of(Grudging("no"))
    assert isinstance(outcome, Failed)
    assert outcome.kind == "unknown"


# Fetches.


def test_fetch_errors_say_themselves_what_they_are() -> None:
    page = "https://Acme.com/p?token=secret12345678901234567890"
    cases: list[tuple[FetchError, str, str]] = [
        (FetchError("status 500", page, 500), "transient", "transient 500 acme.com"),
        (FetchError("status 404", page, 404, True), "permanent", "permanent 404 acme.com"),
        (FetchError("status 403", page, 403, True, "auth"), "auth", "auth 403 acme.com"),
        (FetchError("too large", page, None, True, "data"), "data", "data too large acme.com"),
        # Cut off in the middle: whole the next time.
        (FetchError("cut off", page, kind="data"), "transient", "transient cut off acme.com"),
        (AddressRefused("is private", page), "permanent", "permanent is private acme.com"),
        (RobotsUnreachable("no robots", page), "transient", "transient no robots acme.com"),
    ]
    for error, kind, cause in cases:
        outcome = outcome_of(error)
        assert isinstance(outcome, Failed)
        assert (outcome.kind, outcome.cause, outcome.host) == (kind, cause, "acme.com")
        assert outcome.is_permanent == (kind in FAIL_FAST)
        assert "secret" not in outcome.error


@pytest.mark.parametrize(
    ("error", "host"), [(HostClosed("acme.com", 30.0), "acme.com"), (ClientError(429), "")]
)
def test_throttling_is_no_failure(error: Exception, host: str) -> None:
    outcome = outcome_of(error)
    assert isinstance(outcome, Throttled)
    assert (outcome.host, outcome.delay_s) == (host, 30.0)


def test_waiting_and_forbidden_pages_are_no_failures() -> None:
    assert isinstance(outcome_of(Paced("acme.com", 3.0)), Snoozed)
    assert isinstance(outcome_of(Disallowed("no", "https://a.com/")), Skipped)


def test_provider_may_name_the_time_to_wait() -> None:
    error = RateLimitError()
    error.retry_after = 7  # type: ignore[attr-defined]
    assert outcome_of(error) == Throttled("", 7.0)


def test_timeout_is_transient_and_known_as_one() -> None:
    failed = timed_out(30.0)
    assert (failed.kind, failed.is_timeout, failed.is_permanent) == ("transient", True, False)


# Declared types.


def test_what_a_pipeline_declares_comes_before_what_we_know() -> None:
    declared = check_declared({"transient": (KeyError,), "auth": ShopError})
    assert classify(KeyError("x"), declared) == "transient"
    assert classify(ShopTimeout(), declared) == "auth"
    assert classify(FileNotFoundError(), declared) == "permanent"
    failed = outcome_of(
        FetchError("status 404", "https://a.com/", 404, True), _declared(FetchError)
    )
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.is_permanent) == ("transient", False)


def _declared(kind: type[BaseException]) -> Declared:
    return check_declared({"transient": [kind]})


def test_first_declaration_that_fits_counts() -> None:
    declared = check_declared({"data": (ShopTimeout,), "transient": (ShopError,)})
    assert classify(ShopTimeout(), declared) == "data"
    assert classify(ShopError(), declared) == "transient"


# Causes.


def cause_of(error: BaseException) -> str:
    try:
        raise error
    except BaseException as raised:
        outcome = redacted(outcome_of(raised), frozenset())
    assert isinstance(outcome, Failed)
    return outcome.cause


def test_cause_is_the_error_and_the_last_line_of_ones_own_code() -> None:
    def parse() -> None:
        json.loads("{")

    try:
        parse()
    except ValueError as error:
        outcome = outcome_of(error)
    assert isinstance(outcome, Failed)
    # The standard library raised it, in a file of its own; the place is ours.
    line = parse.__code__.co_firstlineno + 1
    assert outcome.cause == f"JSONDecodeError at test_failures.py:{line}"
    assert "/" not in outcome.cause


def test_same_line_is_the_same_cause_whatever_the_data() -> None:
    causes = {cause_of(KeyError(name)) for name in ("price", "name")}
    assert len(causes) == 1


def test_step_may_name_the_cause() -> None:
    assert cause_of(BadData("no price on page 7", cause="selector .price")) == "selector .price"
    assert cause_of(Transient("later", cause="x" * 5000)) == "x" * 200
    assert cause_of(Permanent("gone")).startswith("Permanent at test_failures.py:")


def test_other_outcomes_of_ours_have_a_cause_too() -> None:
    assert cause_of(DataError("an item is not JSON")) == "an item is not JSON"
    assert cause_of(PipelineError("no such stage")) == "no such stage"


def test_declared_errors_are_public() -> None:
    assert issubclass(penstock.BadData, Exception)
    assert (penstock.BadData("x").cause, str(penstock.BadData("x"))) == ("", "x")


# How often each kind is tried.


def tried(kind: str, retry: RetryClass) -> int:
    """How many tries a job has that always fails in this way."""
    rng, tries = random.Random(1), 0
    while True:
        job = Claimed(7, 1, 1, "extract", "k", tries + 1, tries, 0, 0, False, "null")
        tries += 1
        if settle(job, Failed("x", kind=kind), retry, rng).state is JobState.QUARANTINED:
            return tries


@pytest.mark.parametrize(
    ("kind", "tries"),
    [("transient", 6), ("unknown", 2), ("permanent", 1), ("auth", 1), ("data", 1), ("budget", 1)],
)
def test_each_kind_is_tried_as_often_as_it_may_help(kind: str, tries: int) -> None:
    assert tried(kind, RETRY_CLASSES["provider-safe"]) == tries


def test_unknown_failures_are_never_tried_more_often_than_known_ones() -> None:
    assert tried("unknown", RetryClass("once", 1, 1.0, 1.0)) == 1
    assert tried("unknown", RetryClass("often", 9, 1.0, 1.0, unknown_tries=5)) == 5


# Which class holds.

OWN = retry_classes(
    {"patient": RetryChoice("provider-safe", tries=9), "short": RetryChoice(cap_s=2.0)}
)


def test_own_class_says_what_is_different_from_another() -> None:
    assert OWN["patient"] == RetryClass("patient", 9, 10.0, 3600.0)
    assert OWN["short"] == RetryClass("short", 4, 0.5, 2.0)
    assert OWN["fast"] == RETRY_CLASSES["fast"]


@pytest.mark.parametrize(
    ("pipeline", "source", "step", "expected"),
    [
        (None, RetryChoice(), None, ("fast", 4)),
        (RetryChoice("patient"), RetryChoice(), None, ("patient", 9)),
        (RetryChoice("patient"), RetryChoice("conservative"), None, ("conservative", 4)),
        (RetryChoice("patient"), RetryChoice("conservative"), RetryChoice("short"), ("short", 4)),
        (RetryChoice("patient"), RetryChoice(tries=2), None, ("patient", 2)),
        (None, RetryChoice("patient", tries=2), RetryChoice(tries=3), ("patient", 3)),
        (None, RetryChoice("patient", tries=2), RetryChoice("fast"), ("fast", 4)),
    ],
)
def test_step_weighs_more_than_source_and_source_more_than_pipeline(
    pipeline: RetryChoice | None,
    source: RetryChoice,
    step: RetryChoice | None,
    expected: tuple[str, int],
) -> None:
    chosen = choose_retry(OWN, pipeline, source, step)
    assert (chosen.name, chosen.tries) == expected


def test_longer_first_wait_is_not_cut_by_the_classs_longest() -> None:
    chosen = choose_retry(OWN, None, RetryChoice("fast", base_s=60.0))
    assert (chosen.base_s, chosen.cap_s) == (60.0, 60.0)
