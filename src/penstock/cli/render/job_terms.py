"""What a job is performed under, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.render.wording import count, duration

if TYPE_CHECKING:
    from penstock.app.views.jobs import RetryView, TermsView


def terms_fields(terms: TermsView, tries: int) -> list[tuple[str, str]]:
    """A line for each, with how many tries are spent."""
    endless = "none: it runs until it is stopped"
    timeout = endless if terms.timeout_s is None else f"{duration(terms.timeout_s)} an attempt"
    retry = terms.retry
    budgets = [f"{each.text}, {each.left_text}" for each in terms.budgets]
    return [
        ("timeout", timeout),
        ("retry class", f"{retry.name}: {_tries(retry)}, {tries} spent; {_waits(retry)}"),
        *(("budget", text) for text in budgets or ["none"]),
    ]


def _tries(retry: RetryView) -> str:
    return count(retry.tries, "try", "tries")


def _waits(retry: RetryView) -> str:
    return f"waits {duration(retry.base_s)} at first, {duration(retry.cap_s)} at most"
