"""One masking: no surface shows a secret, in any spelling, wherever the text is cut."""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.render.output import Output
from penstock.cli.render.wording import shortened
from penstock.engine.supervisor.worker_child import _relay
from penstock.engine.worker.redaction import redact_notes, redacted
from penstock.http.failures import FetchError
from penstock.jobs.effects import Effects, Note, Rejection
from penstock.jobs.outcome import Failed, Skip, Skipped
from penstock.pipeline.error_outcome import outcome_of
from penstock.settings.secrets import LOOKED_AT, MASK, Masker

SECRET = "Zq7Xw9Kp3Vt5Rm1N"
PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
q0FhVqBDOLSHJU4IvV0zTvQ8+Y8BSXWR6Xb7VJqQfUuGm2Pn1yOwdL/zXv2dTZ1i
mQ5ZcQ==
-----END PRIVATE KEY-----
"""


def lower_percent(text: str) -> str:
    found = quote(text, safe="")
    return "".join(
        found[i : i + 3].lower() if found[i] == "%" else found[i]
        for i in range(len(found))
        if "%" not in found[max(0, i - 2) : i]
    )


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "repr": repr,
    "ascii": ascii,
    "bytes": lambda text: repr(text.encode()),
    "JSON": json.dumps,
    "JSON in Unicode": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "JSON with slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "repr of JSON": lambda text: repr(json.dumps(text)),
    "HTML": html.escape,
    "HTML text": lambda text: html.escape(text, quote=False),
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "XML": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "percent": lambda text: quote(text, safe=""),
    "percent of a path": quote,
    "percent, lower case": lower_percent,
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "a form": quote_plus,
    "CSV": lambda text: text.replace('"', '""'),
    "SQL": lambda text: text.replace("'", "''"),
    "hexadecimal": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a URL": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 without its end": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "Basic": lambda text: "Basic " + base64.b64encode(f"someone:{text}".encode()).decode(),
    "Basic, longer": lambda text: "Basic " + base64.b64encode(f"user:{text}:x".encode()).decode(),
    "Bearer": lambda text: f"Authorization: Bearer {text}",
}
secrets = st.text(
    st.sampled_from("abcXYZ019-_.~!@#$%^&*()+=/\\'\"<>;:, \n\täß€🔑"), min_size=8, max_size=40
).filter(lambda text: len(text.strip()) >= 8 and "\n" not in text.strip())


@given(secrets, st.sampled_from(sorted(SPELLINGS)))
def test_a_secret_is_masked_in_every_spelling(secret: str, spelling: str) -> None:
    spelled = SPELLINGS[spelling](secret.strip())
    shown = Masker([secret]).mask(f"before {spelled} after")
    assert spelled not in shown
    assert MASK in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 5))
def test_a_secret_inside_other_base64_is_masked(before: int, after: int, tail: int) -> None:
    secret = SECRET + "x" * tail
    whole = base64.b64encode(b"\0" * before + secret.encode() + b"\xff" * after).decode()
    shown = Masker([secret]).mask(whole)
    made_of_it = whole[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]
    assert pieces(made_of_it, 3).isdisjoint(pieces(shown, 3))
    assert MASK in shown


@given(st.integers(0, 3000), st.integers(1, 2100), st.sampled_from(sorted(SPELLINGS)))
def test_no_cut_leaves_a_part_of_a_secret(before: int, longest: int, spelling: str) -> None:
    spelled = SPELLINGS[spelling](SECRET)
    shown = Masker([SECRET]).mask_and_cut("." * before + spelled + "." * 50, longest)
    assert len(shown) <= longest
    assert pieces(SECRET).isdisjoint(pieces(shown))


@given(st.integers(LOOKED_AT - 40, LOOKED_AT + 2))
def test_a_text_that_was_cut_before_it_was_looked_at_shows_no_part_either(before: int) -> None:
    gathered = ((SECRET + " ") * 900 + "." * before)[: before - 8] + SECRET
    shown = Masker([SECRET]).mask_and_cut(gathered[:LOOKED_AT], LOOKED_AT)
    assert pieces(SECRET).isdisjoint(pieces(shown))


@given(st.lists(st.integers(1, 60), max_size=20))
def test_a_secret_that_comes_in_pieces_is_masked(sizes: list[int]) -> None:
    text, masker, shown, rest = f"{'.' * 90}{SECRET}{'.' * 30}{SECRET}", Masker([SECRET]), "", ""
    for size in [*sizes, len(text)]:
        told, rest = masker.mask_piece(rest + text[:size])
        shown, text = shown + told, text[size:]
    assert shown + masker.mask(rest) == f"{'.' * 90}{MASK}{'.' * 30}{MASK}"


def pieces(text: str, length: int = 4) -> set[str]:
    return {text[i : i + length] for i in range(len(text) - length + 1)} - {"." * length}


@pytest.mark.parametrize("spell", [str, repr, json.dumps], ids=["as it is", "repr", "JSON"])
def test_every_line_of_a_secret_with_several_lines_is_masked(spell: Callable[[str], str]) -> None:
    masker = Masker([PEM])
    key = PEM.splitlines()[1:-1]
    shown = "".join(masker.mask(line) for line in spell(PEM).splitlines())
    assert not any(line in shown for line in key)
    assert not any(line in masker.mask(f"  {line}  ") for line in key)
    assert masker.mask("-----BEGIN") == "-----BEGIN"


def test_what_a_key_file_holds_is_secret_without_it() -> None:
    file = json.dumps({"type": "service_account", "private_key": PEM, "token": SECRET})
    assert Masker([file]).mask(f"{SECRET} service_account") == f"{MASK} service_account"
    assert PEM.splitlines()[1] not in Masker([file]).mask(PEM)


@pytest.mark.parametrize("before", range(280, 300))
def test_a_secret_that_others_have_cut_off_is_masked_as_far_as_it_goes(before: int) -> None:
    error = FetchError("refused", f"https://hooks.example/{'x' * (before - 22)}{SECRET}/more")
    kept = redacted(outcome_of(error), frozenset({SECRET}))
    assert isinstance(kept, Failed)
    assert pieces(SECRET).isdisjoint(pieces(kept.error))
    assert Masker([SECRET]).mask(f"{SECRET[:9]}... and so on ...") == f"{MASK}... and so on ..."


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_that_stands_twice_side_by_side_is_masked_twice(spelling: str) -> None:
    spelled, masker = SPELLINGS[spelling](SECRET), Masker({SECRET})
    of_secret = pieces(spelled) - pieces(masker.mask(spelled))
    assert of_secret.isdisjoint(pieces(masker.mask(spelled + spelled)))


def test_secrets_that_overlap_are_masked_together() -> None:
    assert Masker(["abcdef", "defghi"]).mask("<abcdefghi>") == f"<{MASK}>"
    assert Masker(["abab"]).mask("<ababab>") == f"<{MASK}>"


def test_looking_for_secrets_takes_time_in_proportion_to_the_text() -> None:
    masker = Masker(["\\\\\\\\host''''\\name", "++++////====", SECRET])

    def took_s(size: int) -> float:
        text = ("\\" * size + "'" * size + "&amp;" * size + "%25" * size) + "host name"
        times = []
        for _ in range(3):
            began = time.process_time()
            masker.mask(text)
            times.append(time.process_time() - began)
        return min(times)

    assert took_s(16_000) < 40 * max(took_s(1_000), 1e-4)


@pytest.mark.parametrize("before", [1980, 1990, 1995, 2000, LOOKED_AT - 10])
def test_an_error_is_masked_before_it_is_cut(before: int) -> None:
    outcome = outcome_of(ValueError("." * before + SECRET + "." * 100))
    kept = redacted(outcome, frozenset({SECRET}))
    assert isinstance(kept, Failed)
    assert len(kept.error) <= 2000
    assert pieces(SECRET).isdisjoint(pieces(kept.error))


def test_what_a_step_says_is_cut_even_where_there_are_no_secrets() -> None:
    kept = redacted(outcome_of(ValueError("." * 100_000)), frozenset())
    assert isinstance(kept, Failed)
    assert len(kept.error) == 2000
    effects = Effects(notes=[Note("." * 10_000)], rejections=[Rejection("code", "." * 10_000)])
    redact_notes(effects, frozenset())
    assert [len(effects.notes[0].text), len(effects.rejections[0].reason)] == [2000, 2000]


def test_what_a_skipped_page_leaves_behind_is_masked() -> None:
    skipped = Skipped(f"is {SECRET}", effects=Effects(notes=[Note(f"saw {SECRET}")]))
    kept = redacted(skipped, frozenset({SECRET}))
    assert isinstance(kept, Skipped)
    assert kept.reason == f"is {MASK}"
    assert kept.effects is not None
    assert kept.effects.notes == [Note(f"saw {MASK}")]
    assert redacted(outcome_of(Skip("plain")), frozenset({SECRET})) == Skipped("plain")


@pytest.mark.parametrize("longest", range(10, 40))
def test_a_cell_of_a_table_is_masked_before_it_is_cut(longest: int) -> None:
    out = Output(io.StringIO(), io.StringIO())
    out.secrets = frozenset({SECRET})
    out.table(["key"], [[shortened(f"https://x/?t={SECRET}", longest)]])
    assert isinstance(out.stdout, io.StringIO)
    assert pieces(SECRET).isdisjoint(pieces(out.stdout.getvalue()))


def test_what_a_step_prints_without_end_is_masked_across_the_pieces_it_is_read_in() -> None:
    async def relay() -> str:
        reader, told = asyncio.StreamReader(limit=1024), list[str]()
        for _ in range(200):
            reader.feed_data(b"." * 17 + SECRET.encode())
        reader.feed_eof()
        await _relay(reader, frozenset({SECRET}), told.append)
        return "".join(told)

    shown = asyncio.run(relay())
    assert shown == ("." * 17 + MASK) * 200
