"""The connector `imap`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from penstock.connectors.contract import Connector, Document, Found, Item, Place, Sample
from penstock.connectors.imap.connections import Connections, Wanted
from penstock.connectors.imap.documents import document_of, headers_of
from penstock.connectors.imap.folder_listing import FolderListing
from penstock.connectors.imap.folders import key_of_address, wanted_folders
from penstock.connectors.imap.keys import ImapKeys
from penstock.connectors.imap.maildir import Maildir, write_sample
from penstock.connectors.imap.tokens import Tokens
from penstock.connectors.target import Recognised
from penstock.http.addresses import is_refused
from penstock.jobs.failures import Permanent
from penstock.pipeline.context import Captured

if TYPE_CHECKING:
    from penstock.connectors.imap.session import Session
    from penstock.connectors.target import Target
    from penstock.pipeline.context import Context

CONTENT_TYPE = "message/rfc822"
# To parse less takes no longer than to go to a thread and back.
SMALL = 65_536


class Imap(Connector[ImapKeys]):
    """A mailbox. A message never changes, so it is read once; its key is folder, UIDVALIDITY and UID."""

    name = "imap"
    summary = "a mailbox by IMAP, or a Maildir: messages, threads, attachments"
    Settings = ImapKeys
    extra = "imap"
    modules = ("imapclient",)
    deletions = "absent"
    finds_renames = True
    has_stream = True
    hints = True
    retry = "conservative"
    # Those that wait together get their messages with one FETCH. There are several times as many, so that the
    # server looks for the next ones while these are stored and read.
    concurrency = 256

    def __init__(self, settings: ImapKeys, place: Place) -> None:
        super().__init__(settings, place)
        self._connections = Connections(self.opened, settings.host, settings.the_port)
        self._tokens = Tokens(settings)
        self._maildir: Maildir | None = None
        if settings.mailbox:
            root = place.root / Path(settings.mailbox).expanduser()
            self._maildir = Maildir(root, place.source, settings)

    async def discover(self, ctx: Context, cursors: Mapping[str, Any]) -> AsyncIterator[Found]:
        """Folder by folder: only what has changed, where the server can tell."""
        if self._maildir is not None:
            async for found in self._maildir.discover(ctx):
                yield found
            return
        session = await self._connections.session(ctx)
        is_well = False
        try:
            folders = await self.asked(ctx, session, session.folders)
            for folder in wanted_folders(folders, self.settings.folders, self.settings.exclude):
                listing = FolderListing(ctx, self._connections, session, folder, self.settings)
                async for each in listing.walk(self.place.source, cursors):
                    yield each
            is_well = True
        finally:
            if is_well:
                self._connections.keep(session)
            else:
                session.close()

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document]:
        async def bring() -> Captured:
            return await self._brought(ctx, item)

        async with self._connections.room.take(item.about.get("size", 0)):
            response = await ctx.capture(
                item.address,
                bring,
                CONTENT_TYPE,
                counted=self._maildir is not None,
                anew=bool(item.about.get("anew")),
            )

            def made() -> Document:
                with_attachments = self.settings.attachments
                return document_of(item.key, response, with_attachments=with_attachments)

            yield made() if len(response.body) <= SMALL else await ctx.in_thread(made)

    async def listen(self, ctx: Context) -> AsyncIterator[Document]:
        """Hints, and no documents."""
        if self._maildir is not None:
            raise Permanent(
                "a Maildir gives no hints: run the source by a schedule", cause="no IDLE"
            )
        from penstock.connectors.imap.hints import Hints

        await Hints(self, ctx).follow()
        for nothing in tuple[Document]():
            yield nothing

    async def digest(self, ctx: Context, item: Item) -> str:
        from hashlib import sha256

        from penstock.connectors.contract import Gone

        try:
            return sha256((await self._brought(ctx, item)).body).hexdigest()
        except Gone:
            return ""

    def key_of(self, address: str) -> str:
        return key_of_address(self.place.source, address)

    async def _brought(self, ctx: Context, item: Item) -> Captured:
        about = item.about
        if self._maildir is not None:
            return await self._maildir.read(ctx, about["file"])
        from penstock.connectors.imap.session import moment

        raw = about["folder"].encode("latin-1")
        wanted = Wanted(raw, about["validity"], about["uid"], about["size"])
        found = await self._connections.message(ctx, wanted)
        flags = sorted(flag.decode("latin-1") for flag in found.get(b"FLAGS", ()))
        body = found.get(b"BODY[]") or b""
        return Captured(body, headers_of(flags, moment(found.get(b"INTERNALDATE"))))

    async def asked(self, ctx: Context, session: Session, work: Any) -> Any:
        return await self._connections.ask(ctx, session, work, 1_000_000)

    async def opened(self, ctx: Context) -> Session:
        """A connection that is logged in."""
        from penstock.connectors.imap.session import Session

        keys = self.settings
        token = await self._tokens.current(ctx) if keys.oauth is not None else ""
        door = ctx.door(keys.host, keys.the_port, tls=keys.tls == "tls")
        opened = await door.connect()
        session = Session(opened, keys.host, keys.the_port)
        try:
            if keys.tls == "none" and not is_refused(opened.getpeername()[0]):
                raise Permanent(
                    f"{keys.host} is a public server: with tls: none, all could read the password"
                )
            await self.asked(ctx, session, session.greet)
            if keys.tls == "starttls":
                await self.asked(ctx, session, lambda: session.begin_tls(door.tls_context()))
            if keys.oauth is not None:
                work = lambda: session.login_with_token(keys.user, token)  # noqa: E731
            else:
                work = lambda: session.login(keys.user, keys.password)  # noqa: E731
            await self.asked(ctx, session, work)
        except BaseException:
            session.close()
            raise
        return session

    @classmethod
    async def recognise(cls, target: Target) -> Recognised | None:
        """`imaps://me@mail.example`, and a folder that is a Maildir."""
        path = target.path
        if path is not None:
            if not all((path / part).is_dir() for part in ("cur", "new", "tmp")):
                return None
            keys: dict[str, Any] = {"mailbox": target.written(path), "folders": ["*"]}
            return Recognised(keys=keys, why="a Maildir", name=path.name, fit=80)
        return _of_address(target.text)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"host": "imap.example.com", "user": "me", "password": "${MAIL_PASSWORD}"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        write_sample(folder)
        return Sample("demo-imap", {"mailbox": f"./{folder.name}", "folders": ["*"]})


def _of_address(text: str) -> Recognised | None:
    """The keys for `imaps://me@mail.example:993/INBOX`; a password in it is not taken."""
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in ("imap", "imaps") or not rest:
        return None
    try:
        parts = urlsplit(f"{scheme.lower()}://{rest}")
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    keys: dict[str, Any] = {
        "host": parts.hostname,
        "user": unquote(parts.username or "me"),
        "password": "${MAIL_PASSWORD}",
    }
    if scheme.lower() == "imap":
        keys["tls"] = "starttls"
    if port:
        keys["port"] = port
    if folder := unquote(parts.path.strip("/")):
        keys["folders"] = [folder]
    return Recognised(keys=keys, why="a mailbox", name="mail", fit=90)
