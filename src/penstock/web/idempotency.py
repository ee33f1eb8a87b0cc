"""Idempotency keys of requests: whoever repeats one gets the first answer, and nothing is done again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.app.idempotency import Asked, IdempotencyKeys
from penstock.app.verbs.problems import Problem

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.app.verbs.acts import Act
    from penstock.app.verbs.roles import Identity

HEADER, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
LONGEST_KEY = 255


def asked_once(
    request: Request, identity: Identity, act: Act, given: Mapping[str, Any]
) -> Asked | None:
    """What a request with a key asks for; None if it has none."""
    keys = request.headers.getlist(HEADER)
    if not keys:
        return None
    key = keys[0]
    is_plain = key.isascii() and key.isprintable()
    if len(keys) > 1 or not 0 < len(key) <= LONGEST_KEY or not is_plain:
        raise Problem(
            422, "bad_key", f"An {HEADER} has 1 to {LONGEST_KEY} printable ASCII characters."
        )
    if not act.keeps_answer:
        raise Problem(
            422,
            "no_key_here",
            f"The answer of {act.name} is not stored, so it takes no {HEADER}.",
            "send the request without it",
        )
    return Asked.for_act(identity.name, key, act.name, given)


def keys_of(request: Request) -> IdempotencyKeys:
    found: IdempotencyKeys = request.app.state.keys
    return found
