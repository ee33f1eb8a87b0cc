"""Enrichment: answers of providers and pages of sites, and what of them a company believes."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.builder.claims import Claim, confidence_of, with_claims
from penstock.builder.enrich.address import parsed_address, with_address
from penstock.builder.enrich.dns import DnsAnswer, JsonDns, takes_mail
from penstock.builder.enrich.domain import candidates, choose, guesses, with_domain
from penstock.builder.enrich.email import judge_email
from penstock.builder.enrich.geocoder import Nominatim, Photon, located
from penstock.builder.enrich.google_maps import Places, with_place
from penstock.builder.enrich.phone import judge_phone
from penstock.builder.enrich.serp import GenericJson, Hit, LocalIndex, Searx, query_of
from penstock.builder.enrich.site import contact_links, page_facts, with_site
from penstock.builder.parse.rows import html_rows, jsonld_rows

ACME: dict[str, Any] = {
    "name": "Acme Tools LLC",
    "street": "12 Main St",
    "city": "Springfield",
    "postcode": "62704",
    "region": "IL",
    "country": "US",
}


def test_the_stronger_claim_wins_and_the_other_stays_as_evidence() -> None:
    said = with_claims(
        {"name": "Acme"},
        [
            Claim.of("phone", "+1", "dump"),
            Claim.of("phone", "+2", "json-ld"),
            Claim.of("phone", "+3", "search"),
        ],
    )
    assert said["phone"] == "+2"
    assert said["evidence"]["phone"] == {
        "source": "json-ld",
        "confidence": 0.9,
        "others": ["+1", "+3"],
    }
    assert confidence_of(said, "phone") == 0.9
    assert confidence_of(said, "email") == 0.0


def test_an_address_is_taken_apart_or_not_at_all() -> None:
    assert parsed_address("123 N. Main St Apt 4, Springfield, IL 62704", None) == {
        "street": "123 N. Main St Apt 4",
        "city": "Springfield",
        "region": "IL",
        "postcode": "62704",
        "country": "US",
    }
    assert parsed_address("12 rue de la Paix, 75002 Paris, France", None) == {
        "street": "12 rue de la Paix",
        "city": "Paris",
        "postcode": "75002",
        "country": "FR",
    }
    assert parsed_address("Hauptstr. 5; D-10115 Berlin", "DE")["postcode"] == "10115"
    for nothing in ("around the corner", "Call us in Springfield IL today", "x" * 5000, None):
        assert parsed_address(nothing, None) == {}
    made = with_address({"name": "A", "address": "9 Elm Ave, Salem, OR 97301", "city": "Salem"})
    assert (made["street"], made["postcode"], "address" in made) == ("9 Elm Ave", "97301", False)


def test_a_geocoder_fills_gaps_of_the_same_address_alone() -> None:
    photon = Photon("http://geo.localhost:1/")
    ask = photon.ask(ACME)
    assert ask is not None
    assert ask.url.startswith("http://geo.localhost:1/api?q=12%20Main%20St")
    assert photon.ask({"name": "Acme"}) is None

    def feature(number: str, postcode: str) -> dict[str, Any]:
        return {
            "geometry": {"coordinates": [-89.65, 39.78]},
            "properties": {
                "housenumber": number,
                "street": "Main Street",
                "city": "Springfield",
                "postcode": postcode,
                "countrycode": "US",
                "state": "Illinois",
            },
        }

    found = photon.read({"features": [feature("12", "10001"), feature("12", "62704"), "junk"]})
    made = located(ACME, found)
    assert (made["lat"], made["lon"], made["postcode"]) == (39.78, -89.65, "62704")
    assert located(ACME, photon.read({"features": [feature("12", "10001")]})) == ACME
    row = {
        "lat": "39.78",
        "lon": "-89.65",
        "address": {
            "road": "Main St",
            "house_number": "12",
            "town": "Springfield",
            "postcode": "62704",
            "country_code": "us",
        },
    }
    assert located(ACME, Nominatim("http://geo").read([row]))["lat"] == 39.78
    junks: list[Any] = [
        None,
        [],
        {"features": 5},
        {"features": [{"geometry": {"coordinates": "x"}}]},
    ]
    for junk in junks:
        assert located(ACME, photon.read(junk)) == ACME


def place(name: str, number: str = "12", **more: Any) -> dict[str, Any]:
    parts = [
        ("street_number", number),
        ("route", "Main St"),
        ("locality", "Springfield"),
        ("postal_code", "62704"),
        ("country", "US"),
    ]
    return {
        "displayName": {"text": name},
        "addressComponents": [
            {"types": [kind], "longText": text, "shortText": text} for kind, text in parts
        ],
        "internationalPhoneNumber": "+1 217-555-0188",
        "websiteUri": "https://acmetools.com/?utm_source=maps",
        **more,
    }


def test_a_map_is_believed_about_the_company_at_its_address_and_about_no_other() -> None:
    maps = Places("http://maps", key="a secret")
    ask = maps.ask(ACME)
    assert ask is not None
    assert (ask.method, ask.url) == ("POST", "http://maps/v1/places:searchText")
    assert "a secret" not in repr(ask) + ask.url + str(ask.body)
    assert msgspec.json.decode(ask.body or b"")["regionCode"] == "US"
    others = [
        place("Beta Tools"),
        place("Acme Tools", "99"),
        place("Acme Tools", businessStatus="CLOSED_PERMANENTLY"),
    ]
    assert with_place(ACME, maps.read({"places": others})) == ACME
    made = with_place(ACME, maps.read({"places": [*others, place("ACME Tools")]}))
    assert (made["phone"], made["website"], made["domain"]) == (
        "+12175550188",
        "https://acmetools.com/",
        "acmetools.com",
    )


def test_searches_of_every_provider_give_hits() -> None:
    answer = {
        "results": [
            {"url": "https://acmetools.com/x", "title": "Acme", "content": "in Springfield"},
            {"url": "mailto:x"},
            7,
        ]
    }
    assert Searx("http://s").read(answer) == [
        Hit("https://acmetools.com/x", "Acme", "in Springfield")
    ]
    generic = GenericJson("http://s/?q={query}&k=1", "$.data.items", {"url": "link"})
    assert generic.ask("a&b c").url == "http://s/?q=a%26b%20c&k=1"
    assert generic.read({"data": {"items": [{"link": "acme.com", "title": "A"}]}}) == [
        Hit("http://acme.com/", "A")
    ]
    assert generic.read({"data": []}) == []
    index = LocalIndex(
        [
            {"url": "http://a/", "title": "Beta"},
            {"url": "http://b/", "title": "Acme Tools Springfield"},
        ]
    )
    assert [hit.url for hit in index.search(query_of(ACME))] == ["http://b/"]


def test_the_domain_with_the_best_evidence_is_chosen_and_the_dns_can_veto_it() -> None:
    company = {**ACME, "email": "joe@acmetools.com", "phone": "+12175550188"}
    hits = [
        {"url": "https://www.yelp.com/acme", "title": "Acme Tools"},
        {"url": "https://acme-widgets.com/", "title": "Widgets", "snippet": ""},
        {"url": "https://acmetools.com/about", "title": "Acme Tools", "snippet": "Springfield"},
    ]
    found = candidates(company, hits)
    assert [each.domain for each in found] == ["acmetools.com", "acme-widgets.com"]
    assert "label is the name" in found[0].evidence
    assert choose(found) == found[0]
    assert choose(found, {"acmetools.com": DnsAnswer(False)}) is None
    assert choose(found, {"acmetools.com": DnsAnswer(None)}) == found[0]
    parked = [{"url": "https://acmetools.com/", "facts": {"is_parked": True}}]
    assert choose(candidates({**ACME, "website": "http://acmetools.com/"}, pages=parked)) is None
    confirmed = [
        {
            "url": "https://acme-widgets.com/",
            "facts": {"phones": ["+12175550188"], "title": "Acme Tools"},
        }
    ]
    assert (
        candidates({**company, "email": None}, hits[1:2], confirmed)[0].domain == "acme-widgets.com"
    )
    made = with_domain(company, found[0])
    assert (made["domain"], made["website"]) == ("acmetools.com", "https://acmetools.com/about")
    assert (
        with_domain({**ACME, "domain": "gone.com", "website": "http://gone.com/"}, None)["domain"]
        is None
    )
    assert guesses(ACME, ["com"]) == ["acmetools.com", "acme-tools.com"]


def test_an_email_address_is_plausible_below_the_companys_domain_where_mail_arrives() -> None:
    dns = JsonDns("http://dns/resolve")
    assert dns.ask("acme.com", "MX").url == "http://dns/resolve?name=acme.com&type=MX"
    mx = dns.read({"Status": 0, "Answer": [{"type": 15, "data": "10 mx.acme.com."}]}, "MX")
    none = dns.read({"Status": 0, "Answer": [{"type": 15, "data": "0 ."}]}, "MX")
    assert (takes_mail(mx), takes_mail(none), takes_mail(dns.read({"Status": 3}, "MX"))) == (
        True,
        False,
        False,
    )
    assert takes_mail(dns.read({"Status": 2}, "MX")) is None
    judged = judge_email("info@acme.com", "acme.com", mx)
    assert (judged["plausible"], judged["role"], judged["free"]) == (True, True, False)
    reasons = [
        judge_email(email, "acme.com", answer)["reason"]
        for email, answer in [
            ("a@other.com", mx),
            ("a@acme.com", none),
            ("noreply@acme.com", mx),
            ("no", mx),
            ("joe@gmail.com", mx),
        ]
    ]
    assert reasons == ["other domain", "no mail", "unread", "syntax", ""]


def test_a_phone_of_another_country_is_not_plausible() -> None:
    assert judge_phone("+12175550188", "US")["plausible"] is True
    assert judge_phone("+12175550188", "CA")["plausible"] is True  # one plan for both
    assert judge_phone("+442079460018", "US")["reason"] == "other country"
    assert judge_phone("217", "US")["reason"] == "syntax"


JSON_LD = """<title>Acme Tools | Home</title><script type="application/ld+json">{"@graph":[
{"@type":"WebSite","name":"x"},{"@type":["LocalBusiness"],"name":"Acme Tools","telephone":"(217) 555-0188",
"email":"mailto:info@acmetools.com","address":{"streetAddress":"12 Main St",
"addressLocality":"Springfield","postalCode":"62704",
"addressRegion":"Illinois","addressCountry":"US"},"geo":{"latitude":"39.7","longitude":-89.6},"foundingDate":"1998-05",
"sameAs":["https://www.linkedin.com/company/acme","https://x.com/acme"]}]}</script>
<a href="/contact-us">Contact</a><a href="/about">About</a><a href="https://other.com/contact">no</a>"""
MICRODATA = """<div itemscope itemtype="http://schema.org/Plumber"><b itemprop=name>Acme Tools</b>
<p itemprop=address itemscope>
<i itemprop=streetAddress>12 Main St</i><i itemprop=addressLocality>Springfield</i>
<i itemprop=postalCode>62704</i></p>
<span itemprop=telephone>+1 217 555 0188</span></div>"""
PLAIN = """<h1>Contact</h1><p>Address: 12 Main St, Springfield, IL 62704</p>
<p>Call 217-555-0188 (order 2175550188123)</p>
<p>info [at] acmetools [dot] com or someone@example.com</p><footer><a href="https://facebook.com/acmetools">f</a></footer>"""


def test_facts_of_a_page_are_the_same_however_it_tells_them() -> None:
    for html in (JSON_LD, MICRODATA, PLAIN):
        facts = page_facts(html, "http://acmetools.com/", "US")
        made = with_site(
            {"name": "Acme Tools", "domain": "acmetools.com", "country": "US"}, [facts]
        )
        assert (made["street"], made["city"], made["postcode"]) == (
            "12 Main St",
            "Springfield",
            "62704",
        )
        assert made["phone"] == "+12175550188"
        if html is not MICRODATA:
            assert made["email"] == "info@acmetools.com"
    assert (
        page_facts(JSON_LD, "http://a.com/")["linkedin"] == "https://www.linkedin.com/company/acme"
    )
    assert contact_links(JSON_LD, "http://acmetools.com/") == [
        "http://acmetools.com/contact-us",
        "http://acmetools.com/about",
    ]


def test_a_page_about_another_address_does_not_mix_its_parts_into_ours() -> None:
    facts = page_facts(
        JSON_LD.replace("12 Main St", "99 Oak Ave").replace("62704", "10001"), "http://a.com/"
    )
    made = with_site(ACME, [facts])
    assert (made["street"], made["postcode"]) == ("12 Main St", "62704")


def test_a_parked_domain_says_nothing_about_its_company() -> None:
    facts = page_facts(
        "<title>acme.com</title><p>This domain is for sale! Call 217-555-0188",
        "http://acme.com/",
        "US",
    )
    assert facts["is_parked"]
    assert with_site(ACME, [facts]) == ACME


def test_pages_of_directories_give_rows() -> None:
    assert [row["name"] for row in jsonld_rows(JSON_LD, "http://d/")] == ["Acme Tools"]
    assert html_rows(MICRODATA, "http://d/")[0]["phone"] == "+12175550188"
    head = "<tr><th>Company<th>City<th>Phone</tr>"
    table = f"<table>{head}<tr><td>Acme<td>Springfield<td>217 555 0188</tr><tr><td></tr></table>"
    assert html_rows(table, "http://d/") == [
        {"name": "Acme", "city": "Springfield", "phone": "217 555 0188"}
    ]
    assert html_rows("<table><tr><th>Name<th>Age<tr><td>Bob<td>7</table>", "http://d/") == []
