"""What a project is deployed with: a Dockerfile, a compose file, and systemd units of `up` and `web`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from penstock.exporters.starts import Place
from penstock.exporters.units import service

# The uid in the image; volumes belong to it.
UID = 10001
ENVIRONMENT = "compose"
# A worker finishes what it has begun, or puts it back, before it is killed.
GRACE_S = 60
DATABASE_IMAGE = "postgres:17-bookworm"
DOCKERFILE = """\
# Made by `penstock export deploy`. docker build -t {image} .
FROM python:{python}-slim-bookworm
ENV PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN useradd --system --uid {uid} --home-dir /app --shell /usr/sbin/nologin penstock \\
 && install -d -o penstock -g penstock /app /app/snapshots
WORKDIR /app
{copy}RUN {install}
COPY . .
USER penstock
# SIGTERM drains; see `docker stop --time`.
STOPSIGNAL SIGTERM
ENTRYPOINT ["penstock"]
CMD ["up", "--log-format", "json"]
"""
IGNORED = """\
# Made by `penstock export deploy`: what does not belong into an image, secrets above all.
.git
.env
*.env
.venv
__pycache__
*.db
*.db-wal
*.db-shm
snapshots
compose.yaml
Dockerfile
*.service
"""
OVERLAY = """\
# Made by `penstock export deploy`: laid over penstock.yaml where PENSTOCK_ENV=compose. PGPASSWORD is set.
store: postgresql://penstock@postgres/penstock?sslmode=disable   # it is the compose file's own network
"""
COMPOSE_HEAD = """\
# Made by `penstock export deploy`: Postgres, two workers (one leads), and the dashboard on this machine.
#   echo "POSTGRES_PASSWORD=$(openssl rand -hex 24)" >> .env
#   docker compose up --detach --build --wait
#   docker compose run --rm web token create me --role admin     # to log in at http://127.0.0.1:8787
"""
UNIT_HEAD = "# Made by `penstock export deploy`.\n"
UNIT_TAIL = """
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class Image:
    """How the image is made: pip's arguments, the requirements that they name, and the version of Python.

    `variables` are those that penstock.yaml uses beside `store:`, which the compose file decides.
    """

    install: tuple[str, ...]
    python: str
    requirements: str = ""
    variables: tuple[str, ...] = ()


def deploy(place: Place, image: Image) -> dict[str, str]:
    """The files by name. Units are for this host, as the project stands on it."""
    files = {
        "Dockerfile": _dockerfile(place, image),
        ".dockerignore": IGNORED,
        "compose.yaml": COMPOSE_HEAD + _yaml(_compose(place, image)),
        "penstock-up.service": _unit(place, "Penstock workers and scheduler", ("up",)),
        "penstock-web.service": _unit(place, "Penstock API and dashboard", ("web", "--no-link")),
    }
    if not place.environment:
        files[f"penstock.{ENVIRONMENT}.yaml"] = OVERLAY
    return files


def _dockerfile(place: Place, image: Image) -> str:
    words = ["python", "-m", "pip", "install", *image.install]
    requirements = image.requirements
    return DOCKERFILE.format(
        image=_plain(place.project),
        python=image.python,
        uid=UID,
        copy=f"COPY {json.dumps([requirements, './'])}\n" if requirements else "",
        install=shlex.join(words),
    )


def _compose(place: Place, image: Image) -> dict[str, object]:
    common: dict[str, object] = {
        "build": ".",
        "image": _plain(place.project),
        "init": True,
        "restart": "unless-stopped",
        "environment": {
            "PENSTOCK_ENV": place.environment or ENVIRONMENT,
            "PGPASSWORD": "${POSTGRES_PASSWORD:?set it in .env}",
            **{name: f"${{{name}:?set it in .env}}" for name in image.variables},
        },
        "volumes": ["snapshots:/app/snapshots"],
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108  a mount in the container
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }
    ready = {"migrate": {"condition": "service_completed_successfully"}}
    return {
        "name": _plain(place.project),
        "services": {
            "postgres": _database(),
            "migrate": {
                **common,
                "command": ["db", "migrate", "--yes"],
                "restart": "on-failure",
                "depends_on": {"postgres": {"condition": "service_healthy"}},
            },
            "worker": {
                **common,
                "command": ["up", "--log-format", "json"],
                "depends_on": ready,
                "stop_grace_period": f"{GRACE_S}s",
                "deploy": {"replicas": 2},
            },
            "web": {
                **common,
                "command": _WEB,
                "depends_on": ready,
                "ports": ["127.0.0.1:8787:8787"],
                "healthcheck": {
                    "test": ["CMD", "python", "-c", _HEALTH],
                    "interval": "10s",
                    "timeout": "5s",
                    "retries": 6,
                },
            },
        },
        "volumes": {"database": {}, "snapshots": {}},
    }


# It listens beyond loopback only where a proxy has a certificate; this machine uses the port.
_ORIGIN = "${PENSTOCK_ORIGIN:-https://localhost}"
_WEB = ["web", "--host", "0.0.0.0", "--origin", _ORIGIN, "--no-link"]  # noqa: S104  in the container
_HEALTH = "import urllib.request as r; r.urlopen('http://127.0.0.1:8787/healthz', timeout=4)"


def _database() -> dict[str, object]:
    return {
        "image": DATABASE_IMAGE,
        "restart": "unless-stopped",
        "environment": {
            "POSTGRES_USER": "penstock",
            "POSTGRES_DB": "penstock",
            "POSTGRES_PASSWORD": "${POSTGRES_PASSWORD:?set it in .env}",
        },
        "volumes": ["database:/var/lib/postgresql/data"],
        "healthcheck": {
            "test": ["CMD-SHELL", "pg_isready --username penstock --dbname penstock"],
            "interval": "2s",
            "timeout": "3s",
            "retries": 30,
        },
        # A fast shutdown writes a checkpoint first.
        "stop_signal": "SIGINT",
        "stop_grace_period": f"{GRACE_S}s",
    }


def _unit(place: Place, title: str, command: Sequence[str]) -> str:
    words = [*place.command, command[0], "--project", place.folder]
    words += ["--env", place.environment] if place.environment else []
    words += command[1:]
    whole = service(place, f"{title} of {place.project}", words, GRACE_S, "exec")
    return UNIT_HEAD + whole + UNIT_TAIL


def _plain(name: str) -> str:
    """As names of images and compose projects may be."""
    text = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-")
    return text or "penstock"


def _yaml(found: dict[str, object]) -> str:
    text: str = yaml.dump(found, Dumper=_NoAliases, sort_keys=False, allow_unicode=True, width=110)
    return text


class _NoAliases(yaml.SafeDumper):
    """What stands in several services is written out in each."""

    def ignore_aliases(self, data: object) -> bool:
        return True
