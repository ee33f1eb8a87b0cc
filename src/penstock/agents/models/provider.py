"""Providers: asking a model over HTTP, by the interface that OpenAI has and most others copy."""

from __future__ import annotations

import json
from typing import Protocol

import msgspec

from penstock.http.failures import FetchError
from penstock.http.network import RawResponse
from penstock.http.request_gates import Price
from penstock.pipeline.context import Context
from penstock.pipeline.fetch_options import FetchOptions

MILLION = 1_000_000
# Of HTML and JSON a token has more bytes than this: what a question may cost at the most is known before.
BYTES_PER_TOKEN = 2
LONGEST_ANSWER = 64_000
PATH = "/chat/completions"


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model, and what a million tokens of its input and output cost."""

    model: str
    input: float = 0.0
    output: float = 0.0

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        return (self.input * tokens_in + self.output * tokens_out) / MILLION


class Answer(msgspec.Struct, frozen=True):
    """What a model said, and what that cost; no text where it is not that of a chat completion."""

    text: str
    cost: float = 0.0
    problem: str = ""


class NoAnswer(Exception):
    """This model did not answer, or not as it should; a cheaper one may be asked."""


class OutOfBudget(NoAnswer):
    """What is left of a budget is less than this model may cost; a cheaper one may be asked."""


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
        tokens_in = len(json.dumps(body)) // BYTES_PER_TOKEN
        most = tier.cost(tokens_in, self._most_tokens)
        price = Price(most, lambda raw: _cost(tier, raw, most))
        try:
            response = await self._ctx.send(self._url, options, price)
        except FetchError as error:
            if error.kind == "budget":
                raise OutOfBudget(error.message) from None
            raise NoAnswer(error.message) from None
        return _read(response.body, _cost_of(tier, response.body, most))


def _read(body: bytes, cost: float) -> Answer:
    """What the interface answers with. A server may say anything."""
    try:
        text = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return Answer("", cost, "the answer is not that of a chat completion")
    if not isinstance(text, str) or len(text) > LONGEST_ANSWER:
        return Answer("", cost, "the answer has no text, or too much")
    return Answer(text, cost)


def _cost(tier: Tier, raw: RawResponse, most: float) -> float:
    """A refusal costs nothing."""
    return _cost_of(tier, raw.body, most) if 200 <= raw.status < 300 else 0.0


def _cost_of(tier: Tier, body: bytes, most: float) -> float:
    """By the tokens that the answer names; the most that it may cost where it names none."""
    try:
        usage = json.loads(body)["usage"]
        tokens = [usage["prompt_tokens"], usage["completion_tokens"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return most
    if not all(type(each) is int and 0 <= each < 100 * MILLION for each in tokens):
        return most
    return tier.cost(*tokens)
