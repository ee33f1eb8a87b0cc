"""What a step asks of `ctx.fetch`, checked and made into one request."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

import msgspec

from penstock.errors import ConfigError, PipelineError, nearest
from penstock.http.browser.options import IDLE, LOAD, SELECTOR, RenderOptions
from penstock.http.cookies import cookie_header
from penstock.settings import parse_duration

Scalar: TypeAlias = str | int | float | bool
Fields: TypeAlias = Mapping[str, Scalar | Sequence[Scalar] | None]
Missing = Literal["fail", "skip"]

MISSING: tuple[Missing, ...] = ("fail", "skip")
MISSING_STATUSES = frozenset({404, 410})
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class FetchOptions(msgspec.Struct, frozen=True):
    """The arguments of `ctx.fetch` beside the URL, as the step gave them."""

    method: str | None = None
    params: Fields | None = None
    headers: Mapping[str, str] | None = None
    json: Any = None
    data: Fields | None = None
    body: bytes | str | None = None
    timeout: float | str | None = None
    conditional: bool = False
    etag: str | None = None
    last_modified: str | None = None
    missing: Missing | None = None
    cookies: Mapping[str, Any] | None = None
    max_bytes: int | None = None

    def request(self, url: str) -> tuple[str, dict[str, Any]]:
        """The whole URL, and what is different from a plain GET of it."""
        body, content_type = self._payload()
        method = self._method("POST" if body is not None else "GET")
        headers = dict(self.headers or {})
        if content_type and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = content_type
        if self.cookies:
            try:
                headers["Cookie"] = cookie_header(self.cookies)
            except (TypeError, ValueError) as error:
                raise PipelineError(f"ctx.fetch: {error}") from None
        options = {
            "method": None if method == "GET" else method,
            "headers": headers or None,
            "body": body,
            "timeout_s": self._timeout_s(),
            "max_bytes": self._max_bytes(),
            "conditional": self.conditional or None,
            "etag": self.etag,
            "last_modified": self.last_modified,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return _with_params(url, self.params), given

    def _payload(self) -> tuple[bytes | None, str]:
        given = [name for name in ("json", "data", "body") if getattr(self, name) is not None]
        if len(given) > 1:
            raise PipelineError(f"ctx.fetch takes one of json, data and body, not {given}")
        if self.json is not None:
            try:
                return msgspec.json.encode(self.json), JSON
            except (TypeError, ValueError, RecursionError) as error:
                raise PipelineError(f"ctx.fetch: json is not JSON: {error}") from None
        if self.data is not None:
            return _encoded(self.data).encode(), FORM
        if isinstance(self.body, str):
            return self.body.encode(), ""
        return self.body, ""

    def _method(self, usual: str) -> str:
        method = (self.method or usual).upper()
        if method not in METHODS:
            raise PipelineError(f"ctx.fetch knows no method {method!r}, {nearest(method, METHODS)}")
        return method

    def _timeout_s(self) -> float | None:
        if self.timeout is None:
            return None
        try:
            timeout = self.timeout
            seconds = parse_duration(timeout) if isinstance(timeout, str) else float(timeout)
        except (ConfigError, TypeError, ValueError):
            seconds = 0.0
        if not 0 < seconds < math.inf:
            words = f"seconds or text such as 30s, not {self.timeout!r}"
            raise PipelineError(f"ctx.fetch needs a timeout in {words}")
        return seconds

    def _max_bytes(self) -> int | None:
        most = self.max_bytes
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise PipelineError(
                f"ctx.fetch needs max_bytes as a whole number from 1 up, not {most!r:.60}"
            )
        return most

    def skips(self, usual: Missing) -> bool:
        """Whether a page that is not there is skipped; `usual` is for fetches that don't say."""
        missing = self.missing or usual
        if missing not in MISSING:
            raise PipelineError(
                f"ctx.fetch: missing must be fail or skip, not {missing!r}, "
                f"{nearest(str(missing), MISSING)}"
            )
        return missing == "skip"


PLAIN = FetchOptions()


def render_options(
    wait: str, wait_timeout: float | str, screenshot: Any, about: Mapping[str, Any]
) -> RenderOptions:
    """The arguments of `ctx.render` beside the URL."""
    try:
        timeout = wait_timeout
        seconds = parse_duration(timeout) if isinstance(timeout, str) else float(timeout)
        is_word = wait in (LOAD, IDLE) or wait.startswith(SELECTOR)
        given = {
            "wait": wait if is_word else SELECTOR + wait,
            "wait_timeout_s": seconds,
            "screenshot": screenshot,
            **about,
        }
        if not 0 < seconds < math.inf:
            raise ValueError("wait_timeout must be more than 0")
        return msgspec.convert(given, RenderOptions)
    except (ConfigError, TypeError, ValueError) as error:
        raise PipelineError(f"ctx.render: {error}") from None


def _with_params(url: str, params: Fields | None) -> str:
    query = _encoded(params or {})
    if not query:
        return url
    address, hash_sign, fragment = url.partition("#")
    separator = "&" if "?" in address else "?"
    return f"{address}{separator}{query}{hash_sign}{fragment}"


def _encoded(fields: Fields) -> str:
    """As a form sends them: a list is one field for each of its values, and None is left out."""
    return urlencode(
        {name: _words(value) for name, value in fields.items() if value is not None}, doseq=True
    )


def _words(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, Sequence):
        return [_words(each) for each in value]
    raise PipelineError(f"ctx.fetch: params and data take text, numbers and lists, not {value!r}")
