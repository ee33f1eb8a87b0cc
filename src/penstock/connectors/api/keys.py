"""The keys of the connector `api`."""

from typing import Annotated, Any, Literal, get_args

import msgspec

from penstock.connectors.jsonpath import PathError, compile_path
from penstock.settings.connector import ConnectorKeys
from penstock.settings.declaration import (
    SECRET,
    Keys,
    Reads,
    Schema,
    Usual,
    about,
    between,
    decode,
    no_less,
)
from penstock.settings.document import Entry
from penstock.settings.kinds import Duration, Ref, one_or_many, text_schema
from penstock.settings.secrets import MASK
from penstock.settings.section import Section, describe, plain, read_choice, read_text, text_of

Kind = Literal["auto", "none", "page", "offset", "cursor", "link", "next", "relay"]
Place = Literal["query", "body", "variable"]
Stop = Literal["short", "empty"]
Method = Literal["GET", "POST"]
KINDS: tuple[str, ...] = get_args(Kind)
FORMATS = ("iso", "date", "unix", "unix_ms", "number")
MOST_PAGES = 100_000
# Which keys of `paging` belong to which kinds, where they do not belong to all.
_OF_KINDS = {
    "param": ("page", "offset", "cursor", "relay"),
    "place": ("page", "offset", "cursor"),
    "start": ("page", "offset"),
    "next": ("cursor", "next", "relay"),
    "last": ("cursor",),
    "total": ("page", "offset"),
    "pages": ("page", "offset"),
    "stop": ("page", "offset"),
}


def read_path(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    try:
        return compile_path(text).text
    except PathError as error:
        raise entry.error(path, str(error)) from None


def _read_paths(entry: Entry, path: str) -> tuple[str, ...]:
    written = entry.value if isinstance(entry.value, list) else [entry]
    if not written:
        raise entry.error(path, "must not be empty; name a field")
    found = tuple(read_path(each, path) for each in written)
    for each, text in zip(written, found, strict=True):
        if not compile_path(text).is_singular:
            raise each.error(path, f"{text} can select several values; name one field")
    return found


def _read_mapping(entry: Entry, path: str) -> dict[str, Any]:
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be a mapping, not {describe(entry)}")
    return {name: plain(inner) for name, inner in entry.value.items()}


def _mapping(_: Ref) -> Schema:
    return {"type": "object"}


def _read_start(entry: Entry, path: str) -> str:
    if isinstance(entry.value, (int, float)) and not isinstance(entry.value, bool):
        return str(entry.value)
    return text_of(entry, path)


JsonPathText = Annotated[str, Reads(read_path, text_schema)]


class ApiPagingKeys(Keys, frozen=True, kw_only=True, omit_defaults=True):
    """How the pages of an API follow each other."""

    kind: Annotated[
        Kind,
        about(
            "`page` numbers, `offset`s of records, a `cursor`, the `link` header, the URL of the `next` page "
            "in the answer, GraphQL's `relay`, or `none`; `auto` recognises it from the first answer"
        ),
    ] = "auto"
    param: Annotated[
        str | None,
        about("parameter that has the page number, offset or cursor"),
        Usual("`page`, `offset`, `cursor`, `after`"),
    ] = None
    place: Annotated[
        Place | None,
        about("where the parameter is sent: in the `query`, the `body`, or a GraphQL `variable`"),
        Usual("the query of a GET, the body of a POST"),
    ] = None
    start: Annotated[
        Annotated[int, between(0, 1_000_000_000)] | None,
        about("the first page number or offset"),
        Usual("1 for `page`, 0 for `offset`"),
    ] = None
    size: Annotated[
        Annotated[int, between(1, 1_000_000)] | None,
        about("records of a page to ask for"),
        Usual("what the API likes"),
    ] = None
    size_param: Annotated[
        str | None,
        about("parameter that has the size"),
        Usual("`per_page` for `page`, `first` for `relay`, else `limit`"),
    ] = None
    next: Annotated[
        JsonPathText | None,
        about("path of the next cursor, or of the next page's URL, in the answer"),
        Usual("recognised"),
    ] = None
    last: Annotated[
        JsonPathText | None,
        about("path in the last record of a page, if that is the next cursor, such as `id`"),
        Usual("none"),
    ] = None
    more: Annotated[
        JsonPathText | None,
        about("path of a flag that is true while there are more pages"),
        Usual("none"),
    ] = None
    total: Annotated[
        JsonPathText | None,
        about("path of the number of all records; with it, pages are read side by side"),
        Usual("recognised"),
    ] = None
    pages: Annotated[
        JsonPathText | None, about("path of the number of all pages"), Usual("recognised")
    ] = None
    stop: Annotated[
        Stop,
        about(
            "`short`: a page with fewer records than `size` is the last one; `empty`: only a page without "
            "records is"
        ),
    ] = "short"
    max_pages: Annotated[
        int,
        between(1, 10_000_000),
        about("pages of one run; the rest is left out, and the run says so"),
    ] = MOST_PAGES

    @classmethod
    def refuse(cls, at: Section) -> None:
        written = at.get("kind")
        kind = "auto" if written is None else str(written.value)
        for key, kinds in _OF_KINDS.items():
            if at.has(key) and kind not in kinds:
                raise at.error(key, f"belongs to paging of kind {' or '.join(kinds)}, not {kind}")
        if at.has("next") and at.has("last"):
            raise at.error("last", "can't stand beside next: the next cursor is at one place")


def _read_paging(entry: Entry, path: str) -> ApiPagingKeys:
    """A section, or the kind alone: `paging: offset`."""
    if isinstance(entry.value, str):
        return ApiPagingKeys(kind=read_choice(entry, path, KINDS))  # type: ignore[arg-type]
    found: ApiPagingKeys = decode(ApiPagingKeys, entry, path)
    return found


def _paging_schema(ref: Ref) -> Schema:
    return {"anyOf": [{"enum": list(KINDS)}, ref(ApiPagingKeys)]}


def _read_format(entry: Entry, path: str) -> str:
    text = read_text(entry, path)
    return text if "%" in text else read_choice(entry, path, FORMATS)


class ApiSinceKeys(Keys, frozen=True, kw_only=True, omit_defaults=True):
    """What an incremental run asks for: records that changed since the last one."""

    param: Annotated[str, about("parameter that has the time since when changes are asked for")]
    field: Annotated[
        JsonPathText, about("path of the time of the last change in a record, such as `updated_at`")
    ]
    place: Annotated[
        Place | None,
        about("where the parameter is sent, as for `paging.place`"),
        Usual("the query of a GET, the body of a POST"),
    ] = None
    format: Annotated[
        str,
        Reads(_read_format, text_schema),
        about(
            "how the time is written: `iso`, `date`, `unix`, `unix_ms`, or with codes such as `%Y/%m/%d`; "
            "`number` for a field that is a growing number, such as an id"
        ),
    ] = "iso"
    overlap: Annotated[
        Duration,
        no_less(0),
        about("ask for this much more than what is known, for changes that became visible late"),
    ] = 300.0
    start: Annotated[
        str | None,
        Reads(_read_start, text_schema),
        about("what the first run asks for, as the API wants it written"),
        Usual("everything"),
    ] = None


class ApiAuthKeys(Keys, frozen=True, kw_only=True, omit_defaults=True):
    """Credentials. One way of: bearer; header and value; query and value; user and password; token_url."""

    bearer: Annotated[
        str | None, SECRET, about("token, sent as `Authorization: Bearer …`"), Usual("none")
    ] = None
    header: Annotated[
        str | None, about("name of a header that `value` is sent in"), Usual("none")
    ] = None
    query: Annotated[
        str | None, about("name of a query parameter that `value` is sent in"), Usual("none")
    ] = None
    value: Annotated[
        str | None, SECRET, about("the key, for `header` or `query`"), Usual("none")
    ] = None
    user: Annotated[str | None, about("user of HTTP Basic"), Usual("none")] = None
    password: Annotated[
        str | None, SECRET, about("password of HTTP Basic; may be left out"), Usual("none")
    ] = None
    token_url: Annotated[
        str | None,
        about("address that gives a token for OAuth2 client credentials"),
        Usual("none"),
    ] = None
    client_id: Annotated[str | None, about("OAuth2 client"), Usual("none")] = None
    client_secret: Annotated[
        str | None, SECRET, about("secret of the OAuth2 client"), Usual("none")
    ] = None
    scope: Annotated[str | None, about("OAuth2 scope to ask for"), Usual("none")] = None
    audience: Annotated[str | None, about("OAuth2 audience to ask for"), Usual("none")] = None

    def __repr__(self) -> str:
        return f"ApiAuthKeys({MASK})"

    @classmethod
    def refuse(cls, at: Section) -> None:
        ways = [each for each in ("bearer", "header", "query", "user", "token_url") if at.has(each)]
        if len(ways) != 1:
            problem = "needs one of bearer, header, query, user and token_url"
            raise at.entry.error(at.path, f"{problem}, not {' and '.join(ways) or 'none'}")
        needed = {
            "header": ("value",),
            "query": ("value",),
            "token_url": ("client_id", "client_secret"),
        }.get(ways[0], ())
        for key in needed:
            if not at.has(key):
                raise at.error(key, f"is missing; {ways[0]} needs it")
        extra = {"user": ("password",), "token_url": ("scope", "audience")}.get(ways[0], ())
        for key in set(ApiAuthKeys.__struct_fields__) - {ways[0], *needed, *extra}:
            if at.has(key):
                raise at.error(key, f"does not belong to {ways[0]}")


class ApiGraphqlKeys(Keys, frozen=True, kw_only=True, omit_defaults=True):
    """A GraphQL query."""

    query: Annotated[
        str,
        Reads(text_of, text_schema),
        about("the query; for paging it takes a variable `$after` and asks for `pageInfo`"),
    ]
    variables: Annotated[
        dict[str, Any], Reads(_read_mapping, _mapping), about("its variables"), Usual("none")
    ] = msgspec.field(default_factory=dict)


class ApiKeys(ConnectorKeys, frozen=True, kw_only=True, omit_defaults=True):
    """Paginated JSON."""

    url: Annotated[
        str,
        about(
            "address of the first page, or a file relative to penstock.yaml. The `params` of the source are "
            "sent as its query"
        ),
    ]
    records: Annotated[
        JsonPathText | None,
        about("path of the list of records in an answer, such as `data.items`"),
        Usual("the answer itself, or the only list of objects in it"),
    ] = None
    key: Annotated[
        tuple[str, ...],
        Reads(_read_paths, lambda _: one_or_many(), list),
        about("path of the field that makes the key of a record, or a list of them"),
        Usual("`id`"),
    ] = ("$.id",)
    paging: Annotated[
        ApiPagingKeys,
        Reads(_read_paging, _paging_schema, below=ApiPagingKeys),
        about(
            "how pages follow each other, in the keys below; or the kind alone: `paging: offset`"
        ),
        Usual("`auto`"),
    ] = ApiPagingKeys()
    since: Annotated[
        ApiSinceKeys | None,
        about("ask an incremental run only for what changed, in the keys below"),
        Usual("all pages are asked for"),
    ] = None
    deleted: Annotated[
        JsonPathText | None,
        about("path of a field that is true in a record that was deleted: it becomes a tombstone"),
        Usual("none"),
    ] = None
    auth: Annotated[
        ApiAuthKeys | None,
        about("credentials, in the keys below; other headers are `fetch.headers`"),
        Usual("none"),
    ] = None
    method: Annotated[
        Method | None, about("`GET` or `POST`"), Usual("`POST` with a `body` or `graphql`")
    ] = None
    body: Annotated[
        dict[str, Any] | None,
        Reads(_read_mapping, _mapping),
        about("JSON that a POST sends"),
        Usual("none"),
    ] = None
    graphql: Annotated[
        ApiGraphqlKeys | None,
        about("a GraphQL query, in the keys below; pages follow each other by `relay`"),
        Usual("none"),
    ] = None

    @classmethod
    def refuse(cls, at: Section) -> None:
        method = at.get("method")
        if at.has("graphql") and at.has("body"):
            raise at.error("body", "can't stand beside graphql, which is sent as the body")
        for key in ("graphql", "body"):
            if method is not None and method.value == "GET" and at.has(key):
                raise at.error("method", f"can't be GET beside {key}")

    @property
    def is_post(self) -> bool:
        return self.method == "POST" or self.body is not None or self.graphql is not None
