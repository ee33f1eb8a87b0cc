"""The steps of the builder by name, and its profiles. Nothing is imported before a profile is made."""

from __future__ import annotations

from penstock.pipeline.registry import Registry

COLLECTION = "Collection"
CRAWLING = "Crawling"
PARSING = "Parsing & Normalisation"
ENRICHMENT = "Enrichment"
PACKAGING = "Quality & Packaging"

builder = Registry("builder", default="standard", extra="builder", version="builder 2")

builder.add(
    "dumps.collect",
    "penstock.builder.steps.collection:dumps_collect",
    phase=COLLECTION,
    outputs=("row", "link"),
    unit="run",
    network=True,
    timeout="2h",
    summary="rows of the job's dumps, and its seed pages",
)
builder.add(
    "api.collect",
    "penstock.builder.steps.collection:api_collect",
    phase=COLLECTION,
    outputs="row",
    unit="run",
    network=True,
    retry="provider-safe",
    timeout="2h",
    summary="rows of the job's JSON APIs, page by page",
)
builder.add(
    "http.sitemap",
    "penstock.builder.steps.collection:http_sitemap",
    phase=COLLECTION,
    outputs="link",
    unit="run",
    network=True,
    timeout="1h",
    summary="pages that the job's sitemaps name",
)
builder.add(
    "http.static",
    "penstock.builder.steps.collection:http_static",
    phase=COLLECTION,
    needs="dumps.collect",
    after=("dumps.collect", "http.sitemap"),
    takes="link",
    outputs="page",
    unit="page",
    key="url",
    network=True,
    timeout="2m",
    summary="fetches pages",
)
builder.add(
    "headless.collect",
    "penstock.builder.steps.crawl:headless_collect",
    phase=CRAWLING,
    needs="dumps.collect",
    after=("dumps.collect", "http.sitemap"),
    takes="link",
    outputs="page",
    unit="page",
    key="url",
    network=True,
    timeout="3m",
    resources={"cpu": 0.5, "memory_mb": 500},
    summary="draws the pages that need a browser",
)
builder.add(
    "parse.html",
    "penstock.builder.steps.page_rows:parse_html",
    phase=PARSING,
    needs="http.static",
    after=("http.static", "headless.collect"),
    takes="page",
    outputs="row",
    unit="page",
    key="url",
    summary="rows of companies in the markup of a page",
)
builder.add(
    "parse.jsonld",
    "penstock.builder.steps.page_rows:parse_jsonld",
    phase=PARSING,
    needs="http.static",
    after=("http.static", "headless.collect"),
    takes="page",
    outputs="row",
    unit="page",
    key="url",
    summary="rows of companies in the JSON-LD of a page",
)
builder.add(
    "normalize.standardize",
    "penstock.builder.steps.normalisation:normalize_standardize",
    phase=PARSING,
    after=("dumps.collect", "api.collect", "parse.html", "parse.jsonld"),
    takes="row",
    unit="candidate",
    key="key",
    summary="a row of any source in the fields of a company",
)
builder.add(
    "normalize.resolve",
    "penstock.builder.steps.normalisation:normalize_resolve",
    phase=PARSING,
    needs="normalize.standardize",
    outputs="company",
    unit="run",
    gather=True,
    timeout="1h",
    summary="rows of several sources that are one company",
)
builder.add(
    "enrich.address",
    "penstock.builder.steps.enrichment:enrich_address",
    phase=ENRICHMENT,
    needs="normalize.resolve",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    timeout="2m",
    summary="the parts of an address, and where it is",
)
builder.add(
    "http.serp",
    "penstock.builder.steps.enrichment:http_serp",
    phase=COLLECTION,
    needs="enrich.address",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    retry="provider-safe",
    timeout="2m",
    summary="what a search engine finds for a company",
)
builder.add(
    "crawl.site",
    "penstock.builder.steps.crawl:crawl_site",
    phase=CRAWLING,
    needs="http.serp",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    timeout="5m",
    summary="the pages of a company's site that matter, one after the other",
)
builder.add(
    "crawl.site_async",
    "penstock.builder.steps.crawl:crawl_site_async",
    phase=CRAWLING,
    needs="http.serp",
    after="crawl.site",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    timeout="5m",
    summary="the same, several at once",
)
builder.add(
    "enrich.domain",
    "penstock.builder.steps.enrichment:enrich_domain",
    phase=ENRICHMENT,
    needs="normalize.resolve",
    after="crawl.site_async",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    timeout="2m",
    summary="which domain is the company's",
)
builder.add(
    "enrich.site",
    "penstock.builder.steps.enrichment:enrich_site",
    phase=ENRICHMENT,
    needs="enrich.domain",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    timeout="2m",
    summary="what the company's own pages say",
)
builder.add(
    "enrich.email",
    "penstock.builder.steps.enrichment:enrich_email",
    phase=ENRICHMENT,
    needs="normalize.resolve",
    after="enrich.site",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    timeout="2m",
    summary="whether an address can get mail, and whose it is",
)
builder.add(
    "enrich.phone",
    "penstock.builder.steps.enrichment:enrich_phone",
    phase=ENRICHMENT,
    needs="normalize.resolve",
    after="enrich.email",
    takes="company",
    outputs="company",
    unit="candidate",
    key="id",
    summary="whether a telephone number is possible, and where",
)
builder.add(
    "enrich.google_maps",
    "penstock.builder.steps.enrichment:enrich_google_maps",
    phase=ENRICHMENT,
    needs="normalize.resolve",
    after="enrich.phone",
    takes="company",
    outputs="company",
    unit="page",
    key="id",
    network=True,
    retry="provider-safe",
    timeout="2m",
    summary="what a Places API knows of the company",
)
builder.add(
    "quality.checks",
    "penstock.builder.steps.package:quality_checks",
    phase=PACKAGING,
    needs="normalize.resolve",
    after="enrich.google_maps",
    takes="company",
    outputs="company",
    unit="candidate",
    key="id",
    summary="what is missing or contradicts itself",
)
builder.add(
    "quality.score",
    "penstock.builder.steps.package:quality_score",
    phase=PACKAGING,
    needs="quality.checks",
    takes="company",
    unit="candidate",
    key="id",
    summary="a score from 0 to 100; saves the company",
)
builder.add(
    "package.export",
    "penstock.builder.steps.package:package_export",
    phase=PACKAGING,
    needs="quality.score",
    final=True,
    unit="run",
    timeout="1h",
    summary="the dataset as files, with manifest, checksums and a quality report",
)

builder.feature(
    "dumps", "dumps.collect", "http.static", "headless.collect", "parse.html", "parse.jsonld"
)
builder.feature("api", "api.collect")
builder.feature("sitemap", "http.sitemap")
builder.feature("pages", "http.static", "parse.html", "parse.jsonld")
builder.feature("address", "enrich.address", "http.serp", "crawl.site", "crawl.site_async")
builder.feature("serp", "http.serp", "crawl.site", "crawl.site_async")
builder.feature("crawl", "crawl.site_async")
builder.feature("headless", "headless.collect")
builder.feature("site", "enrich.site")
builder.feature("email", "enrich.email")
builder.feature("phone", "enrich.phone")
builder.feature("maps", "enrich.google_maps")

builder.profile(
    "quick",
    steps=(
        "dumps.collect",
        "api.collect",
        "normalize.standardize",
        "enrich.email",
        "enrich.phone",
        "package.export",
    ),
    summary="dumps and APIs, checked and packaged; few requests",
)
builder.profile(
    "standard",
    extends="quick",
    steps=(
        "http.static", "http.sitemap", "parse.html", "parse.jsonld", "enrich.address", "http.serp",
        "crawl.site_async", "enrich.domain", "enrich.site",
    ),
    summary="also pages, search, and each company's own site",
)  # fmt: skip
builder.profile(
    "deep",
    extends="standard",
    steps=("crawl.site", "headless.collect", "enrich.google_maps"),
    config={"crawl": {"max_pages": 12}},
    summary="also a browser, maps, and more pages of each site",
)
