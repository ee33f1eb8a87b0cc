"""The job of a builder: what its steps read from `ctx.params`, declared once.

Keys, defaults, bounds and descriptions stand here; the JSON Schema and the tables of docs/builder.md are made
from them. Budgets, the profile and its features are no part of it: they are keys of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.builder.enrich.serp import MOST
from penstock.builder.matching.scores import THRESHOLD
from penstock.builder.normalize import countries
from penstock.builder.normalize.standardize import ALIASES
from penstock.builder.package.export import FORMATS
from penstock.builder.package.tables import known_formats
from penstock.builder.quality import DEFAULT_TARGETS, WEIGHTS
from penstock.connectors.api.keys import ApiAuthKeys, ApiPagingKeys
from penstock.errors import ConfigError, nearest

Format = Literal["csv", "jsonl", "xml", "parquet", "sqlite", "zip", "tar"]
Parser = Literal["auto", "usaddress", "libpostal", "postcode"]
Share = Annotated[float, Meta(ge=0, le=1)]
Text = Annotated[str, Meta(min_length=1, max_length=2_000)]
GOOGLE = "https://places.googleapis.com"
MAPS_STEP = "enrich.google_maps"
NOTHING_TO_READ = "the job names nothing to read: dumps, api.endpoints, http.seeds or sitemap"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A section of a job."""


class Filters(Part, frozen=True):
    """Which companies are kept. An empty list keeps all; a company that says nothing about it is kept."""

    categories: Annotated[
        tuple[Text, ...], Meta(description="categories that begin like one of these: `[bakery]`")
    ] = ()
    naf_include: Annotated[
        tuple[Text, ...],
        Meta(
            description="the same for codes of activity (NAF, NACE, SIC): `[56.10, 47]`; dots do not count"
        ),
    ] = ()
    regions: Annotated[
        tuple[Text, ...], Meta(description="states or regions, as the dataset has them: `[IL, MA]`")
    ] = ()
    countries: Annotated[tuple[Text, ...], Meta(description="codes of two letters: `[US]`")] = ()


class Dump(Part, frozen=True):
    """A file with rows of companies."""

    path: Annotated[
        Text,
        Meta(
            description="the file, relative to penstock.yaml, a pattern, or the address of a CSV or JSON "
            "lines file on a server; it may be packed"
        ),
    ]
    name: Annotated[
        str, Meta(max_length=60, description="what the dataset calls this source; the file's name")
    ] = ""
    country: Annotated[
        str, Meta(description="where rows without a country belong; else the job's `country`")
    ] = ""
    fields: Annotated[
        dict[str, str],
        Meta(
            description="the column of a field whose name does not tell: `{name: firm, city: place}`"
        ),
    ] = {}
    format: Annotated[Format | None, Meta(description="by the file's name if it is left out")] = (
        None
    )
    delimiter: Annotated[
        str | None, Meta(description="what separates the cells of CSV; by the first line")
    ] = None
    header: Annotated[bool, Meta(description="whether the first line has the names of columns")] = (
        True
    )
    encoding: Annotated[
        str | None, Meta(description="such as `latin-1`; UTF-8 or Windows-1252 if it is left out")
    ] = None
    members: Annotated[
        tuple[Text, ...], Meta(description="files of an archive, or tables of a database")
    ] = ()
    element: Annotated[str | None, Meta(description="the XML element that is a row")] = None


class Endpoint(Part, frozen=True):
    """A JSON API, page by page, as the connector `api` reads it."""

    url: Annotated[Text, Meta(description="address of the first page, or a file")]
    name: Annotated[
        str, Meta(max_length=60, description="what the dataset calls this source; the host")
    ] = ""
    country: Annotated[
        str, Meta(description="where rows without a country belong; else the job's `country`")
    ] = ""
    fields: Annotated[
        dict[str, str], Meta(description="the name of a field that does not tell: `{name: firm}`")
    ] = {}
    records: Annotated[
        str | None, Meta(description="path of the list in an answer: `data.items`; recognised")
    ] = None
    key: Annotated[
        tuple[Text, ...],
        Meta(min_length=1, description="path of what makes a record the same one: `[id]`"),
    ] = ("id",)
    paging: Annotated[
        ApiPagingKeys, Meta(description="how pages follow each other; recognised if left out")
    ] = ApiPagingKeys()
    auth: Annotated[
        ApiAuthKeys | None, Meta(description='credentials: `{bearer: "${API_TOKEN}"}`')
    ] = None
    method: Annotated[Literal["GET", "POST"] | None, Meta(description="`POST` with a `body`")] = (
        None
    )
    body: Annotated[dict[str, Any] | None, Meta(description="JSON that a POST sends")] = None


class Api(Part, frozen=True):
    """JSON APIs."""

    endpoints: Annotated[
        tuple[Endpoint, ...], Meta(max_length=100, description="what is read, in order")
    ] = ()


class Http(Part, frozen=True):
    """Pages that are known from the start."""

    seeds: Annotated[
        tuple[Text, ...],
        Meta(max_length=100_000, description="pages that list or describe companies"),
    ] = ()
    headless: Annotated[
        tuple[Text, ...],
        Meta(
            max_length=10_000,
            description="beginnings of addresses whose pages need a browser (step `headless.collect`)",
        ),
    ] = ()
    wait: Annotated[
        str,
        Meta(description="what the browser waits for: `load`, `idle`, or a CSS selector"),
    ] = "idle"
    browser: Annotated[
        str, Meta(description="path of chromium, if it is not where browsers usually are")
    ] = ""


class Sitemap(Part, frozen=True):
    """Pages that sitemaps name."""

    urls: Annotated[tuple[Text, ...], Meta(max_length=1_000, description="sitemaps")] = ()
    domains: Annotated[
        tuple[Text, ...],
        Meta(max_length=1_000, description="hosts whose sitemap is at `/sitemap.xml`"),
    ] = ()
    allow_patterns: Annotated[
        tuple[Text, ...],
        Meta(description="regular expressions; an address is taken if one is found in it"),
    ] = ()
    max_urls: Annotated[
        int, Meta(ge=1, le=10_000_000, description="pages of all sitemaps together")
    ] = 1_000


class Address(Part, frozen=True):
    """Addresses in one line, and where they are."""

    parser: Annotated[
        Parser,
        Meta(
            description="`usaddress` for the United States, `postcode` for a postcode before the city, "
            "`libpostal` if it is installed; `auto` takes what there is"
        ),
    ] = "auto"
    geocoder: Annotated[
        Literal["photon", "nominatim"] | None,
        Meta(
            description="API of the geocoder: `photon` or `nominatim`; without it nothing is geocoded"
        ),
    ] = None
    url: Annotated[str, Meta(description="its address: `https://geocoder.example.com`")] = ""


class Serp(Part, frozen=True):
    """A search for each company."""

    provider: Annotated[
        Literal["searx", "json", "index"] | None,
        Meta(
            description="`searx` (SearxNG), `json` (any API that answers with a list), or `index` (a file "
            "of JSON lines with url, title and snippet); without it there is no search"
        ),
    ] = None
    url: Annotated[
        str, Meta(description="its address; for `json` with `{query}` in it; for `index` the file")
    ] = ""
    query: Annotated[
        str, Meta(max_length=300, description="what is searched for, of the company's fields")
    ] = "{name} {city}"
    results: Annotated[str, Meta(description="`json`: path of the list in the answer")] = "results"
    names: Annotated[
        dict[Literal["url", "title", "snippet"], str],
        Meta(description="`json`: what url, title and snippet are called there"),
    ] = {}
    headers: Annotated[
        dict[str, str],
        Meta(description='`json`: headers of requests: `{X-Api-Key: "${SERP_KEY}"}`'),
    ] = {}
    most: Annotated[int, Meta(ge=1, le=MOST, description="hits that are looked at")] = MOST

    def __repr__(self) -> str:
        return f"Serp({self.provider})"


class Crawl(Part, frozen=True):
    """The sites of companies."""

    max_pages: Annotated[
        int, Meta(ge=1, le=50, description="pages of one site that are fetched, at most")
    ] = 3
    candidates: Annotated[
        int, Meta(ge=1, le=8, description="domains of one company that are looked at, at most")
    ] = 2
    concurrency: Annotated[
        int, Meta(ge=1, le=16, description="`crawl.site_async`: domains of one company at once")
    ] = 4
    guess: Annotated[
        tuple[Text, ...],
        Meta(description="suffixes below which a company's name may be registered: `[com, net]`"),
    ] = ()


class Dns(Part, frozen=True):
    """The DNS, over HTTPS in JSON."""

    url: Annotated[
        str,
        Meta(
            description="a resolver: `https://dns.example.com/resolve`; without it there are no look-ups, "
            "and no domain is refused for not existing"
        ),
    ] = ""


class Maps(Part, frozen=True):
    """A Places API (step `enrich.google_maps`)."""

    url: Annotated[str, Meta(description="its address")] = GOOGLE
    key: Annotated[str, Meta(description='its key: `"${MAPS_KEY}"`; required for Google\'s')] = ""

    @property
    def lacks_key(self) -> bool:
        """Google answers nobody without one; others may."""
        return not self.key and self.url.rstrip("/") == GOOGLE

    def __repr__(self) -> str:
        return f"Maps({self.url})"


class Dedupe(Part, frozen=True):
    """When rows are one company."""

    threshold: Annotated[
        Share, Meta(description="least score of two rows that are one company")
    ] = THRESHOLD


class Scoring(Part, frozen=True):
    """What the fields of a company are worth."""

    weights: Annotated[
        dict[str, Annotated[float, Meta(ge=0, le=1_000)]],
        Meta(description="points of fields, over the usual ones; they are scaled to 100"),
    ] = {}


class Output(Part, frozen=True):
    """The package."""

    dir: Annotated[Text, Meta(description="folder of the package, relative to penstock.yaml")] = (
        "out"
    )
    formats: Annotated[
        tuple[Literal["csv", "jsonl", "parquet", "xlsx"], ...],
        Meta(min_length=1, description="tables of the package"),
    ] = FORMATS  # type: ignore[assignment]
    title: Annotated[str, Meta(max_length=200, description="of the package; else the `niche`")] = ""
    max_missing_pct: Annotated[
        float,
        Meta(
            ge=0,
            le=100,
            description="no package is made if more companies than this are not finished, for instance in "
            "quarantine",
        ),
    ] = 0.0
    collection: Annotated[
        str, Meta(min_length=1, max_length=60, description="collection that companies are saved in")
    ] = "companies"


class Job(Part, frozen=True):
    """What is built, from what, and how."""

    niche: Annotated[str, Meta(max_length=200, description="what the companies have in common")] = (
        ""
    )
    country: Annotated[str, Meta(description="where companies without a country belong: `US`")] = ""
    filters: Filters = Filters()
    dumps: Annotated[tuple[Dump, ...], Meta(max_length=1_000, description="files to read")] = ()
    api: Api = Api()
    http: Http = Http()
    sitemap: Sitemap = Sitemap()
    address: Address = Address()
    serp: Serp = Serp()
    crawl: Crawl = Crawl()
    dns: Dns = Dns()
    maps: Maps = Maps()
    dedupe: Dedupe = Dedupe()
    scoring: Scoring = Scoring()
    kpi_targets: Annotated[
        dict[str, float],
        Meta(description="targets of the dataset, over the usual ones; see above"),
    ] = {}
    output: Output = Output()

    @property
    def title(self) -> str:
        return self.output.title or self.niche or "Companies"

    @property
    def targets(self) -> dict[str, float]:
        return {**DEFAULT_TARGETS, **self.kpi_targets}

    @property
    def weights(self) -> dict[str, float]:
        return {**WEIGHTS, **self.scoring.weights}

    @property
    def reads_anything(self) -> bool:
        pages = self.http.seeds or self.sitemap.urls or self.sitemap.domains
        return bool(self.dumps or self.api.endpoints or pages)


def job_of(params: Mapping[str, Any]) -> Job:
    """The job that params describe; a ConfigError in one line says which key is wrong."""
    return _job_of(msgspec.json.encode(params, order="deterministic"))


@lru_cache(maxsize=32)
def _job_of(params: bytes) -> Job:
    try:
        job = msgspec.json.decode(params, type=Job)
    except msgspec.ValidationError as error:
        raise ConfigError(f"job: {_in_words(str(error))}", "keys: docs/builder.md") from None
    _refuse(job)
    return job


def _in_words(problem: str) -> str:
    """What msgspec says, with the place first: `$.crawl.max_pages` is `crawl.max_pages`."""
    said, _, place = problem.partition(" - at `")
    at = place.rstrip("`").removeprefix("$").lstrip(".")
    return f"{at}: {said}" if at else said


def _refuse(job: Job) -> None:
    """What can't be right whatever the network says."""
    for place, code in _countries(job):
        if code and countries.country(code) != code:
            raise ConfigError(f"job: {place}: {code!r} is no country", "a code of two letters: US")
    for place, fields in _columns(job):
        _refuse_unknown(place, fields, ALIASES)
    _refuse_unknown("scoring.weights", job.scoring.weights, WEIGHTS)
    _refuse_unknown("kpi_targets", job.kpi_targets, DEFAULT_TARGETS)
    if sum(job.weights.values()) <= 0:
        raise ConfigError("job: scoring.weights: no field has points")
    for place, is_needed, url in (
        ("address.url", job.address.geocoder is not None, job.address.url),
        ("serp.url", job.serp.provider is not None, job.serp.url),
    ):
        if is_needed and not url:
            raise ConfigError(f"job: {place} is missing: where is the provider?")
    if job.serp.provider == "json" and "{query}" not in job.serp.url:
        raise ConfigError("job: serp.url: the address of a `json` provider has {query} in it")
    known_formats(job.output.formats)


def refuse_lacking(job: Job, steps: Set[str]) -> None:
    """Refuse a job that lacks what steps of its profile can't do without, before anything is spent on it."""
    if not job.reads_anything:
        raise ConfigError(
            f"job: {NOTHING_TO_READ}", "a first job shows how", code="job_reads_nothing"
        )
    if MAPS_STEP in steps and job.maps.lacks_key:
        raise ConfigError(
            f"job: maps.key is missing, which {MAPS_STEP} needs",
            'set a variable, and maps: {key: "${MAPS_KEY}"} in the job; or --no-feature maps',
        )


def _countries(job: Job) -> list[tuple[str, str]]:
    return [
        ("country", job.country),
        *((f"dumps[{at}].country", each.country) for at, each in enumerate(job.dumps)),
        *(
            (f"api.endpoints[{at}].country", each.country)
            for at, each in enumerate(job.api.endpoints)
        ),
        *(("filters.countries", code) for code in job.filters.countries),
    ]


def _columns(job: Job) -> list[tuple[str, Mapping[str, str]]]:
    dumps = [(f"dumps[{at}].fields", each.fields) for at, each in enumerate(job.dumps)]
    apis = [
        (f"api.endpoints[{at}].fields", each.fields) for at, each in enumerate(job.api.endpoints)
    ]
    return [*dumps, *apis]


def _refuse_unknown(place: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"job: {place} has no {name!r}; {nearest(name, known)}")
