"""Probing a source: can one log in, is it there, and what would come? Nothing is written."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from penstock.app.privacy import HIDDEN, steps_of
from penstock.app.views.connectors import ProbeView, SampleView
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.engine.dry_run import Tried
    from penstock.http.network import Network

SAMPLE, MOST = 3, 100
# `kind` says it already.
_CLASS = re.compile(r"^[A-Z]\w{0,60}: ")


def probe(
    project: Nouns,
    name: str,
    records: int = SAMPLE,
    *,
    include_private: bool = False,
    network: Network | None = None,
) -> ProbeView:
    """What the connector says of the place, and the first records that a run would save."""
    from penstock.app.run_performer import in_own_loop
    from penstock.engine.dry_run import probe_source

    if not 1 <= records <= MOST:
        raise UsageError(f"the number of records must be between 1 and {MOST}")
    source = project.source(name)
    shown = nullcontext() if include_private else steps_of(project, source.key)
    with shown:
        tried = in_own_loop(lambda: probe_source(project, source.key, records, network))
    is_hidden = source.key in project.settings.private_sources and not include_private
    failed = next(iter(tried.failed), None)
    return ProbeView(
        source=source.key,
        connector=source.connector or None,
        verdict="ok" if tried.saved else "failed" if failed else "empty",
        kind=failed.kind if failed else "",
        reason=_reason(failed.reason, is_hidden=is_hidden) if failed else "",
        facts=tried.facts,
        requests=len(tried.pages),
        notes=[] if is_hidden else tried.notes,
        samples=[] if is_hidden else _samples(tried, records),
        is_hidden=is_hidden,
    )


def _reason(text: str, *, is_hidden: bool) -> str:
    return HIDDEN if is_hidden else _CLASS.sub("", text)


def _samples(tried: Tried, records: int) -> list[SampleView]:
    return [
        SampleView(
            key=str(each.get("key", "")), title=str(each.get("title", "")), text=_start(each)
        )
        for each in tried.saved[:records]
    ]


def _start(document: dict[str, Any]) -> str:
    """The beginning of its text, in one line; of a record that is no document, of its fields."""
    text = document.get("text") or document.get("data") or ("" if "key" in document else document)
    return " ".join(str(text)[:400].split())[:200]
