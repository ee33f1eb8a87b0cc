"""Providers: asking a model over HTTP, by the interface that OpenAI has and most others copy."""

from __future__ import annotations

import json
from typing import Any, Protocol

import msgspec

from penstock.http.failures import FetchError
from penstock.pipeline.context import Context
from penstock.pipeline.fetch_options import FetchOptions

MILLION = 1_000_000
LONGEST_ANSWER = 64_000
PATH = "/chat/completions"


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model, and what a million tokens of its input and output cost."""

    model: str
    input: float = 0.0
    output: float = 0.0

    def cost(self, answer: Answer) -> float:
        return (self.input * answer.tokens_in + self.output * answer.tokens_out) / MILLION


class Answer(msgspec.Struct, frozen=True):
    """What a model said, and how many tokens that took."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0


class NoAnswer(Exception):
    """This model did not answer, or not as it should; a cheaper one may be asked."""


class OutOfBudget(NoAnswer):
    """Nothing more may be spent: no other model is asked, either."""


class Provider(Protocol):
    """Whoever can ask a model."""

    async def ask(self, tier: Tier, system: str, prompt: str) -> Answer: ...


class OpenAiCompatible:
    """`POST URL/chat/completions`, through the source's own limits, budgets and address rules."""

    def __init__(
        self, ctx: Context, url: str, api_key: str, *, timeout: str, most_tokens: int
    ) -> None:
        self._ctx = ctx
        self._url = url.rstrip("/") + PATH
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
        self._timeout = timeout
        self._most_tokens = most_tokens

    async def ask(self, tier: Tier, system: str, prompt: str) -> Answer:
        body = {
            "model": tier.model,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": prompt},
            ],
            "temperature": 0,
            "max_tokens": self._most_tokens,
            "response_format": {"type": "json_object"},
        }
        options = FetchOptions(headers=self._headers, json=body, timeout=self._timeout)
        try:
            response = await self._ctx.send(self._url, options)
        except FetchError as error:
            if error.kind == "budget":
                raise OutOfBudget(error.message) from None
            raise NoAnswer(error.message) from None
        return _read(response.body)


def _read(body: bytes) -> Answer:
    """What the interface answers with. A server may say anything."""
    try:
        found: Any = json.loads(body)
        text = found["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise NoAnswer("the answer is not that of a chat completion") from None
    if not isinstance(text, str) or len(text) > LONGEST_ANSWER:
        raise NoAnswer("the answer has no text, or too much")
    usage = found.get("usage")
    return Answer(text, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def _count(usage: Any, name: str) -> int:
    found = usage.get(name) if isinstance(usage, dict) else None
    return found if isinstance(found, int) and 0 <= found < 100 * MILLION else 0
