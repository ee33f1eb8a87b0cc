"""Lists of a city's companies, as others keep them: a register, leads, a chamber's API, a directory."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from penstock.builder.city import noise
from penstock.builder.city.world import Resident, World

Row = dict[str, Any]
# The share of companies that each list has. A company that no list has is in the register.
SHARES = {"register": 0.7, "leads": 0.5, "chamber": 0.55, "directory": 0.25}
AGAIN = 0.06
NO_COMPANIES = 0.02


def listed(world: World) -> dict[str, list[tuple[Row, int]]]:
    """The rows of each list, with the number of the company that each is about; -1 for rows about none."""
    chance = world.chance("lists")
    makers: dict[str, Callable[[Resident, random.Random], Row]] = {
        "register": _register_row,
        "leads": _lead,
        "chamber": _member,
        "directory": _entry,
    }
    found: dict[str, list[tuple[Row, int]]] = {name: [] for name in makers}
    for resident in world.residents:
        lists = [name for name, share in SHARES.items() if chance.random() < share] or ["register"]
        for name in lists:
            again = 2 if name != "directory" and chance.random() < AGAIN else 1
            found[name] += [(makers[name](resident, chance), resident.number) for _ in range(again)]
    for name in ("register", "leads"):
        junk = max(1, round(len(found[name]) * NO_COMPANIES))
        found[name] += [(_no_company(found[name][0][0], chance), -1) for _ in range(junk)]
        chance.shuffle(found[name])
    for name, rows in found.items():
        for number, (row, _) in enumerate(rows):
            row["id"] = f"{name[0]}{number + 1:05d}"
    return found


def _register_row(resident: Resident, chance: random.Random) -> Row:
    truth = resident.truth
    return {
        "id": "",
        "company_name": noise.spelled_name(truth["name"], chance, typos=0.03),
        "ein": noise.sometimes(f"{truth['legal_id'][:2]}-{truth['legal_id'][2:]}", 0.6, chance),
        "street_address": noise.sometimes(
            noise.spelled_street(truth["street"], chance), 0.97, chance
        ),
        "city": truth["city"],
        "state": truth["region"],
        "zip": noise.sometimes(noise.spelled_postcode(truth["postcode"], chance), 0.97, chance),
        "founded": truth["opened"],
        "phone": noise.sometimes(noise.spelled_phone(truth["phone"], chance), 0.3, chance),
    }


def _lead(resident: Resident, chance: random.Random) -> Row:
    truth = resident.truth
    return {
        "id": "",
        "business_name": noise.spelled_name(truth["name"], chance),
        "address": noise.sometimes(noise.one_line(truth, chance), 0.85, chance),
        "telephone": noise.sometimes(noise.spelled_phone(truth["phone"], chance), 0.8, chance),
        "e-mail": noise.sometimes(truth["email"], 0.4, chance, None),
        "url": noise.sometimes(_website(truth, chance), 0.5, chance, None),
        "headcount": truth["employees"],
    }


def _member(resident: Resident, chance: random.Random) -> Row:
    truth = resident.truth
    return {
        "id": "",
        "name": noise.spelled_name(truth["name"], chance, typos=0.05),
        "street": noise.spelled_street(truth["street"], chance),
        "town": truth["city"],
        "postal_code": noise.sometimes(truth["postcode"], 0.9, chance, None),
        "state": truth["region"],
        "phone": noise.sometimes(noise.spelled_phone(truth["phone"], chance), 0.6, chance, None),
        "email": noise.sometimes(truth["email"], 0.3, chance, None),
        "website": noise.sometimes(_website(truth, chance), 0.4, chance, None),
        "sector": truth["category"],
    }


def _entry(resident: Resident, chance: random.Random) -> Row:
    truth = resident.truth
    return {
        "id": "",
        "name": truth["name"],
        "street": truth["street"],
        "city": truth["city"],
        "postcode": truth["postcode"],
        "region": truth["region"],
        "phone": truth["phone"],
        "style": chance.choice(("json-ld", "microdata")),
    }


def _website(truth: Row, chance: random.Random) -> str | None:
    return None if truth["website"] is None else noise.spelled_website(truth["website"], chance)


def _no_company(like: Row, chance: random.Random) -> Row:
    """A row that names nobody: an empty line, a heading in the middle, a test."""
    return {name: chance.choice(("", "", "-", "N/A")) for name in like}


def as_csv(rows: list[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    # As a spreadsheet saves it: with a mark at its start.
    return b"\xef\xbb\xbf" + text.getvalue().encode()


def as_lines(rows: list[Row]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def api_page(rows: list[Row], page: int, per_page: int) -> Row:
    """One page of the chamber's API; behind the last there is an empty one."""
    first = (page - 1) * per_page
    pages = -(-len(rows) // per_page)
    return {
        "page": page,
        "pages": pages,
        "total": len(rows),
        "items": rows[first : first + per_page] if page > 0 else [],
    }


def directory_entries(world: World) -> Iterator[tuple[str, Row]]:
    """The path of each page of the directory, and what it lists."""
    for row, _ in listed(world)["directory"]:
        yield f"/company/{row['id']}", row
