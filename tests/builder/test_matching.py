"""Entity resolution: which rows are one company, measured on rows whose companies are known."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from penstock.builder.city.labelled import (
    DEVELOPMENT_SEED,
    HELD_OUT_SEED,
    chosen_threshold,
    labelled_rows,
    measure,
)
from penstock.builder.city.world import World
from penstock.builder.matching import THRESHOLD, match, rejoin, resolve
from penstock.builder.matching.blocks import MOST_IN_BLOCK, pairs
from penstock.builder.matching.traits import traits_of

ACME: dict[str, Any] = {
    "name": "Acme Tools LLC",
    "street": "12 Main St",
    "city": "Springfield",
    "postcode": "62704",
    "country": "US",
}


def groups(rows: list[dict[str, Any]]) -> list[list[str]]:
    return sorted(sorted(row["key"] for row in cluster.members) for cluster in match(rows))


def test_the_threshold_is_measured_on_one_half_of_the_labelled_set_and_holds_on_the_other() -> None:
    """The lowest that joins hardly anything wrong: a wrong join loses a company, a missed one shows."""
    development, held_out = labelled_rows(DEVELOPMENT_SEED), labelled_rows(HELD_OUT_SEED)
    assert chosen_threshold(development) == THRESHOLD
    found = measure(held_out, THRESHOLD)
    print(f"held out: precision {found.precision:.4f}, recall {found.recall:.4f}")
    assert found.precision >= 0.995
    assert found.recall >= 0.96


def test_the_same_rows_give_the_same_companies_in_any_order() -> None:
    rows = labelled_rows(5, 120)
    made = list(resolve(rows))
    random.Random(1).shuffle(rows)
    assert list(resolve(rows)) == made
    assert len({company["id"] for company in made}) == len(made)
    assert not any({"key", "source"} & company.keys() for company in made)


def test_a_company_keeps_its_id_when_others_come_and_go() -> None:
    rows = labelled_rows(5, 120)
    before = {company["id"] for company in resolve([row for row in rows if row["key"] < 60])}
    after = {company["id"] for company in resolve(rows)}
    assert before <= after


def test_two_register_numbers_are_never_one_company_however_they_are_linked() -> None:
    rows = labelled_rows(9, 300)
    for cluster in match(rows, threshold=0.0001):
        assert len({row["legal_id"] for row in cluster.members if row.get("legal_id")}) <= 1
    # The one in the middle is like both: it goes to one of them, and does not join the two.
    linked = [
        {**ACME, "key": "a", "legal_id": "1", "phone": "+12175550101"},
        {**ACME, "key": "b", "phone": "+12175550101"},
        {**ACME, "key": "c", "legal_id": "2", "phone": "+12175550101"},
    ]
    assert [len(group) for group in groups(linked)] in ([2, 1], [1, 2])


def test_rows_that_contradict_each_other_are_not_joined_through_a_third() -> None:
    shared = {"phone": "+12175550101", "postcode": "62704"}
    one = {**shared, "key": "a", "name": "Hale Roofing", "street": "12 Main St"}
    third = {**shared, "key": "b", "name": "Hale Roofing", "domain": "haledental.com"}
    other = {
        **shared,
        "key": "c",
        "name": "Hale Dental",
        "street": "4 Oak Ave",
        "domain": "haledental.com",
    }
    assert groups([one, third]) == [["a", "b"]]
    assert groups([third, other]) == [["b", "c"]]
    for rows in ([one, third, other], [other, third, one]):
        assert groups(rows) == [["a", "b"], ["c"]]


def test_the_rows_of_one_company_become_one_with_the_best_of_each() -> None:
    rows = [
        {**ACME, "name": "ACME TOOLS", "sources": ["dump:register"], "legal_id": "123456789"},
        {"name": "Acme Tools, LLC", "phone": "+12175550101", "city": "Springfield",
         "sources": ["api:chamber"], "street": "12 Main Street"},
        {"name": "Acme Tols LLC", "phone": "+12175550101", "domain": "acmetools.com",
         "sources": ["dump:leads"]},
    ]  # fmt: skip
    [company] = resolve(rows)
    company.pop("evidence")
    company.pop("id")
    assert company == {
        **ACME,
        "name": "Acme Tools, LLC",
        "phone": "+12175550101",
        "domain": "acmetools.com",
        "legal_id": "123456789",
        "sources": ["api:chamber", "dump:leads", "dump:register"],
    }


def test_comparisons_grow_with_the_rows_and_not_with_their_square() -> None:
    """Also where everybody shares postcode, domain and number, as a list of one host may have it."""
    crowd = [
        traits_of({**ACME, "name": f"Acme {n:05d}", "domain": "acme.com", "phone": "+1"})
        for n in range(3000)
    ]
    assert sum(1 for _ in pairs(crowd)) <= len(crowd) * MOST_IN_BLOCK
    once = [
        sum(1 for _ in pairs([traits_of(row) for row in labelled_rows(3, size)])) / size
        for size in (100, 400)
    ]
    assert once[1] <= 3 * once[0]


def test_a_world_is_the_same_for_the_same_seed() -> None:
    one, two = World(3, 80), World(3, 80)
    assert msgspec.json.encode(one.residents) == msgspec.json.encode(two.residents)
    assert one.truth != World(4, 80).truth
    phones = [company["phone"] for company in World(3, 500).truth]
    assert len(set(phones)) >= 480  # a holding may share the number of its child


def test_what_enrichment_shows_to_be_one_is_joined_under_an_id_that_one_of_them_had() -> None:
    known = {"phone": "+12025550123", "domain": "acme.com", "email": "info@acme.com"}
    register = {**ACME, **known, "id": "a", "legal_id": "123456789", "sources": ["dump:register"]}
    lead = {**ACME, **known, "id": "b", "sources": ["dump:leads"], "quality_score": 90.0}
    other = {**ACME, "name": "Acme Holdings", "id": "c", "domain": "acme.com", "sources": ["x"]}
    found = sorted(rejoin([lead, register, other]), key=lambda each: each["id"])
    assert [each["id"] for each in found] == ["a", "c"]
    assert found[0]["sources"] == ["dump:leads", "dump:register"]
    assert "quality_score" not in found[0]
    assert found[1] == other
