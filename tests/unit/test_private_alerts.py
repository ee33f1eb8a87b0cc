"""An alert about a private source: what broke is told, and nothing of what the source brought."""

from __future__ import annotations

import json

import pytest

from penstock.app.verbs.reads import READS
from penstock.cli import main
from tests.unit.test_alert_routes import receiving
from tests.unit.test_alerting import PAGES, PIPELINE, Watched, route
from tests.unit.test_private_walk import CONTENT, around, shows
from tests.unit.test_web import Site, visit

GOOD = """<html><title>{word}</title><body><div class="{word}"><span class="price">{n} EUR</span></div>
<script type="application/ld+json">{{"@type": "{word}", "name": "{n}"}}</script></body></html>"""
OTHER = """<html><title>{word}</title><body><section class="{word}-new"><b>{n} EUR</b></section></html>"""


def serve(watched: Watched, body: str) -> None:
    for n in range(PAGES):
        watched.site.page(f"/{CONTENT}/{n}", body.format(n=n, word=CONTENT))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A private shop that was read for 16 days, and then was redesigned."""
    watched = Watched(tmp_path_factory.mktemp("broken") / "shop")
    watched.shop.write(pipelines=PIPELINE, private=True)
    serve(watched, GOOD)
    watched.days(16)
    serve(watched, OTHER)
    watched.days(2)
    return watched


def test_messages_pages_views_and_commands_of_an_alert_show_no_content_of_a_private_source(
    broken: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken.shop.folder
    leaks = list[str]()
    with receiving(200, 200) as slack:
        config = folder / "penstock.yaml"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"alerts": [route(slack)]}))
        [alert] = broken.look()
        broken.deliver()
        told = "\n".join(body.decode() for _, body in slack.seen)
    assert "[high] shop.example: " in told
    if shows(told):
        leaks.append(f"the message: {around(told)}")

    with broken.shop.project() as project:
        token = project.tokens.create("walker", "admin").text
        views = [read for name, read in READS.items() if name.startswith(("alerts.", "runbooks."))]
        paths = [f"/api/v1{read.path}".replace("{alert}", str(alert.id)) for read in views]

        async def steps(at: Site) -> None:
            headers = {"Authorization": f"Bearer {token}"}
            for path in paths:
                answer = await at.ask(
                    "GET", path.replace("{runbook}", alert.runbook), headers=headers
                )
                if shows(answer.text):
                    leaks.append(f"{path}: {around(answer.text)}")
            await at.log_in()
            for path in ("/alerts", f"/alerts/{alert.id}"):
                answer = await at.ask("GET", path, headers={"Accept": "text/html"})
                assert answer.status == 200
                if shows(answer.text):
                    leaks.append(f"{path}: {around(answer.text)}")

        visit(project, steps)
        detail = project.alerts.get(alert.id)
    # It has evidence, and where that is, one sees that it is hidden.
    assert [each.what for each in detail.examples] == ["page"] * 3
    assert detail.structure is not None
    for line in (
        f"alerts show {alert.id}",
        f"alerts show {alert.id} --json",
        "alerts",
        "alerts --json",
    ):
        assert main([*line.split(), "--project", str(folder)]) != 2, line
        out = "".join(capsys.readouterr())
        if shows(out):
            leaks.append(f"{line}: {around(out)}")
    assert "\n".join(leaks) == ""
    assert (
        main(["alerts", "show", str(alert.id), "--include-private", "--project", str(folder)]) == 0
    )
    assert shows(capsys.readouterr().out)
