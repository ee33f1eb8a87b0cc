"""Refusals as data: problem details (RFC 9457), with the error's code and the call that helps."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from penstock.errors import (
    AlreadyRunning,
    ConfigError,
    PenstockError,
    Refused,
    Remedy,
    StoreError,
    StoreTooSlow,
)
from penstock.errors import UsageError as Usage

# How long a client should wait before it asks a database again that does not answer.
RETRY_S = 5


class Problem(Exception):
    """An answer that refuses a request."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        hint: str = "",
        *,
        remedy: Remedy | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.remedy = remedy
        self.headers = headers or {}

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "type": f"urn:penstock:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.hint:
            shown["hint"] = self.hint
        if self.remedy is not None:
            shown["remedy"] = {"verb": self.remedy.verb, "target": self.remedy.target}
        return shown


def problem_of(error: PenstockError) -> Problem:
    """How an error of the application is answered."""
    status = status_of(error)
    # Where a database is, and what its driver says, is for whoever runs the server.
    detail = error.message
    if isinstance(error, StoreTooSlow):
        detail = "This took too long, and was given up; ask for less."
    elif status == 503:
        detail = "The database does not answer now."
    hint = "" if status == 503 else error.hint
    headers = {"Retry-After": str(RETRY_S)} if status == 503 else None
    return Problem(status, error.code, detail, hint, remedy=error.remedy, headers=headers)


def status_of(error: PenstockError) -> int:
    if isinstance(error, StoreError):
        return 503
    if isinstance(error, (Refused, AlreadyRunning)):
        return 409
    if isinstance(error, Usage) and error.code.startswith("no_"):
        return 404
    if isinstance(error, ConfigError) and error.code == "config":
        return 422
    return 422 if isinstance(error, Usage) else 500
