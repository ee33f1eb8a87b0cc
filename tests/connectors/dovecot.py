"""A Dovecot of the tests' own: Debian's, with a private configuration, on a loopback port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from grp import getgrgid
from pathlib import Path
from pwd import getpwuid
from typing import Any

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError

from tests.programs import needed

PASSWORD = "s3cr3t-of-the-place"
PATIENCE_S = 30
CONFIGURATION = """\
base_dir = {folder}/base
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = {ssl}
ssl_cert = <{certificate}
ssl_key = <{certificate}
disable_plaintext_auth = no
auth_mechanisms = plain login {mechanisms}
auth_failure_delay = 0
default_internal_user = {inner}
default_internal_group = {inner_group}
default_login_user = {login}
first_valid_uid = 0
first_valid_gid = 0
mail_location = maildir:{folder}/mail/%u
mailbox_list_index = no
imap_capability = {capability}
passdb {{
  driver = passwd-file
  deny = yes
  args = username_format=%u {folder}/denied
}}
{oauth}
passdb {{
  driver = static
  mechanisms = plain login
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={inner} gid={inner_group} home={folder}/mail/%u
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    special_use = \\Sent
  }}
}}
service imap-login {{
  chroot =
  service_count = 0
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
service auth {{
  client_limit = 2000
}}
service imap {{
  service_count = 200
  process_limit = 100
}}
"""
# Tokens are looked up at a server of the test's own.
OAUTH = """\
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {folder}/oauth2.conf
}}
"""
LOOKUP = """\
introspection_mode = post
introspection_url = {url}
username_attribute = username
active_attribute = active
active_value = true
"""
CERTIFICATE = Path(__file__).parents[1] / "unit" / "localhost_test.pem"


@dataclass
class Dovecot:
    """A running server. Each user has a mailbox of its own, and the same password."""

    folder: Path
    port: int
    users: int = 0

    def new_user(self) -> str:
        """A user whose mailbox nobody has touched."""
        self.users += 1
        return f"user{self.users}"

    def refuse(self, name: str) -> None:
        """This user is not let in any more. The server looks at the file once in a second."""
        with (self.folder / "denied").open("a") as file:
            file.write(f"{name}:\n")
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                self.client(name).logout()
            except IMAPClientError:
                return
            time.sleep(0.05)
        raise RuntimeError("Dovecot lets a denied user in")

    def client(self, name: str) -> Any:
        client = IMAPClient("127.0.0.1", self.port, ssl=False)
        try:
            client.login(name, PASSWORD)
        except IMAPClientError:
            client.shutdown()
            raise
        return client

    def maildir(self, name: str, folder: str = "INBOX") -> Path:
        root = self.folder / "mail" / name
        return root if folder == "INBOX" else root / f".{folder.replace('/', '.')}"


@contextmanager
def running(capability: str = "", ssl: str = "no", introspection: str = "") -> Iterator[Dovecot]:
    """In a folder that the server's own users may enter, as those of pytest are not.

    With the URL of an `introspection` server, it takes tokens (XOAUTH2), too.
    """
    with tempfile.TemporaryDirectory(prefix="dovecot-") as folder:
        Path(folder).chmod(0o755)
        with _running(Path(folder), capability, ssl, introspection) as server:
            yield server


@contextmanager
def _running(folder: Path, capability: str, ssl: str, introspection: str) -> Iterator[Dovecot]:
    program = needed("dovecot")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "mail").mkdir(parents=True)
    (folder / "denied").touch()
    me, group = getpwuid(os.geteuid()).pw_name, getgrgid(os.getegid()).gr_name
    # It refuses to take root for these; its package has users for them.
    inner, login, group = ("dovecot", "dovenull", "dovecot") if me == "root" else (me, me, group)
    shutil.chown(folder / "mail", inner, group)
    configuration = CONFIGURATION.format(
        folder=folder,
        port=port,
        ssl=ssl,
        certificate=CERTIFICATE,
        mechanisms="xoauth2" if introspection else "",
        oauth=OAUTH.format(folder=folder) if introspection else "",
        password=PASSWORD,
        capability=capability,
        inner=inner,
        inner_group=group,
        login=login,
    )
    (folder / "dovecot.conf").write_text(configuration)
    (folder / "oauth2.conf").write_text(LOOKUP.format(url=introspection))
    command = [str(program), "-F", "-c", str(folder / "dovecot.conf")]
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        _wait(server, port, folder)
        yield Dovecot(folder, port)
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def _wait(server: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    """Until it greets."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as opened:
                if opened.recv(100).startswith(b"* OK"):
                    return
        except OSError:
            pass
        if server.poll() is not None or time.monotonic() > until:
            said = [(folder / name) for name in ("output", "log")]
            texts = [file.read_text() for file in said if file.exists()]
            raise RuntimeError("Dovecot does not start: " + "\n".join(texts)[-2_000:])
        time.sleep(0.02)


def append_all(client: Any, folder: str, messages: Sequence[bytes]) -> None:
    for message in messages:
        client.append(folder, message)
