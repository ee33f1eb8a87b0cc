"""What a worker and the process of its browser say to each other: msgpack, each message after its length."""

from __future__ import annotations

import msgspec

from penstock.http.browser.options import Blocked, Screenshot

LENGTH_BYTES = 4


class Render(msgspec.Struct, frozen=True, tag=True):
    """Draw a page. Pages of the same `group` may be drawn one after the other in the same tab."""

    id: int
    group: str
    url: str
    user_agent: str
    wait: str
    wait_timeout_s: float
    screenshot: Screenshot
    viewport: tuple[int, int]
    block: tuple[Blocked, ...]
    scripts: bool
    max_bytes: int


class Hold(msgspec.Struct, frozen=True, tag=True):
    """The time of a page stands still: a request of it waits for its turn."""

    id: int


class Go(msgspec.Struct, frozen=True, tag=True):
    id: int


class Cancel(msgspec.Struct, frozen=True, tag=True):
    id: int


class Answer(msgspec.Struct, frozen=True, tag=True):
    """What a request of a page is answered with; without a status it fails."""

    id: int
    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""


class Ready(msgspec.Struct, frozen=True, tag=True):
    version: str


class Unfit(msgspec.Struct, frozen=True, tag=True):
    """There is no browser, or it does not start."""

    reason: str
    is_permanent: bool


class Asked(msgspec.Struct, frozen=True, tag=True):
    """A request of a page. `frame` is the address of the frame that makes it."""

    id: int
    render: int
    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None
    kind: str
    is_navigation: bool
    is_of_page: bool
    frame: str


class Drawn(msgspec.Struct, frozen=True, tag=True):
    """`is_worn`: the browser holds on to something that it should have let go of."""

    render: int
    url: str
    html: bytes
    screenshot: bytes = b""
    is_worn: bool = False


class Failed(msgspec.Struct, frozen=True, tag=True):
    render: int
    reason: str
    is_permanent: bool = False
    screenshot: bytes = b""
    is_worn: bool = False


ToBrowser = Render | Hold | Go | Cancel | Answer
FromBrowser = Ready | Unfit | Asked | Drawn | Failed

_encode = msgspec.msgpack.Encoder().encode


def framed(message: ToBrowser | FromBrowser) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Frames:
    """Bytes as they arrive, and the whole messages among them."""

    def __init__(self) -> None:
        self._held = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        self._held += data
        found, at = [], 0
        while len(self._held) - at >= LENGTH_BYTES:
            end = at + LENGTH_BYTES
            length = int.from_bytes(self._held[at:end], "big")
            if len(self._held) - end < length:
                break
            found.append(bytes(self._held[end : end + length]))
            at = end + length
        del self._held[:at]
        return found
