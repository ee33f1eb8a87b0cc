"""`tracing:` where traces go, in OpenTelemetry's protocol."""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from penstock.settings.declaration import Keys, Reads, Usual, about, between, names_of
from penstock.settings.document import Entry
from penstock.settings.headers import HeaderValues
from penstock.settings.kinds import text_schema
from penstock.settings.secrets import MASK
from penstock.settings.section import read_text

TRACES_PATH = "/v1/traces"


def _read_endpoint(entry: Entry, path: str) -> str:
    """The collector's address, with the path for traces where it has none."""
    text = read_text(entry, path).strip()
    try:
        url = urlsplit(text)
        is_sound = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_sound = False
    if not is_sound or url.username is not None or url.query or url.fragment:
        raise entry.error(path, "must be an address such as http://127.0.0.1:4318")
    return text if url.path.strip("/") else text.rstrip("/") + TRACES_PATH


class TracingSettings(Keys, frozen=True):
    """Where spans are sent; nothing is traced without an endpoint."""

    endpoint: Annotated[
        str | None,
        Reads(_read_endpoint, text_schema),
        about(
            "address of a collector that speaks OTLP/HTTP: `http://127.0.0.1:4318`; `/v1/traces` is "
            "added where it has no path. Needs `pip install 'penstock[otel]'`"
        ),
        Usual("nothing is traced"),
    ] = None
    headers: Annotated[
        HeaderValues, about('headers of each request: `{authorization: "${OTEL_TOKEN}"}`')
    ] = msgspec.field(default_factory=dict)
    sample: Annotated[
        float, between(0.0, 1.0), about("share of the runs that are traced, each whole")
    ] = 1.0

    def __repr__(self) -> str:
        return f"TracingSettings(endpoint={self.endpoint!r}, headers={MASK}, sample={self.sample})"


TRACING_KEYS = names_of(TracingSettings)
