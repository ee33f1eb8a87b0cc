"""Onboarding: a source is proposed, checked, approved, tried and activated; nothing is fetched before."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.new_source import write_source
from penstock.cli.entry import main
from penstock.cli.render.source_report import markdown
from penstock.engine.leader.scheduler import Scheduler
from penstock.errors import Refused, UsageError
from penstock.http.compliance import words_of
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock
from tests.unit.test_web import Site as Served
from tests.unit.test_web import visit

BROKEN = "the site is broken"
STEPS = """
from penstock import Pipeline

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    for number in range(9):
        yield {"url": f"https://acme.com/{number}"}
    keys = {"connector": "web", "sitemap": "https://found.example/map.xml"}
    ctx.propose_source("found.example", **keys, reason="a link")


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    ctx.save("product", key=page["url"], data={"text": response.text}, score=0.5)
"""
FILE = """\
# Kept as it is.
project: onboarding
onboarding: {required: true, trial_pages: 3}
sources:
  old:  # with a comment
    pipeline: onboarding_steps:shop
    schedule: {every: 1h}
"""


@dataclass
class Site:
    """A site on loopback: its pages by path, and what was asked for."""

    pages: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site({"/robots.txt": "User-agent: *\nDisallow: /admin", "/terms": "<p>Be nice.</p>"})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            body = made.pages.get(self.path)
            self.send_response(404 if body is None else 503 if body == BROKEN else 200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((body or "").encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "penstock.yaml").write_text(FILE)
    (tmp_path / "onboarding_steps.py").write_text(STEPS)
    with Project.open(tmp_path) as made:
        yield made


def keys(site: Site, path: str = "/list") -> dict[str, Any]:
    return {
        "pipeline": "onboarding_steps:shop",
        "params": {"list": f"{site.url}{path}"},
        "fetch": {"allow_private": True, "hosts": ["acme.com"]},
    }


def proposed(project: Project, site: Site, path: str = "/list") -> None:
    project.sources.propose("new", keys=keys(site, path), owner="team", actor="ann", reason="found")


def approved(project: Project, site: Site) -> None:
    proposed(project, site)
    project.sources.check("new", terms=f"{site.url}/terms")
    project.sources.accept_terms("new", actor="bob", reason="read them")
    project.sources.approve("new", actor="bob", reason="fine")


def work(project: Project, pages: int = 9) -> list[str]:
    network = ScriptedNetwork.of_pages({f"https://acme.com/{n}": f"page {n}" for n in range(pages)})
    project.clock = VirtualClock(project.connection.now())
    with Simulation(project, network, seed=1, clock=project.clock) as simulation:
        simulation.run()
    return [url for url in network.requests if not url.endswith("robots.txt")]


def records(project: Project) -> int:
    return len(project.connection.records.of("product", "", 100))


def test_source_goes_from_its_proposal_to_its_first_run(project: Project, site: Site) -> None:
    file = project.settings.file
    proposed(project, site)
    assert file.read_text() == FILE
    with pytest.raises(Refused, match=r"robots\.txt was never checked, its terms were never"):
        project.sources.approve("new")
    assert site.asked == []

    project.sources.check("new", terms=f"{site.url}/terms")
    project.sources.accept_terms("new", actor="bob", reason="read them")
    assert site.asked == ["/robots.txt", "/terms"] * 2
    seen = project.sources.approve("new", actor="bob", reason="fine")
    assert (seen.state, seen.is_configured, seen.approved_by) == ("trial", True, "bob")
    assert file.read_text().startswith(FILE)
    with pytest.raises(Refused, match="in trial"):
        project.runs.start("new")
    with pytest.raises(Refused, match="there is none"):
        project.sources.activate("new")

    trial = project.sources.trial("new", actor="bob").run
    assert trial is not None
    assert len(work(project)) == 3
    assert records(project) == 0
    [found] = project.sources.trials("new")
    assert (found.state, found.records, found.quality) == ("completed", 3, 0.5)
    assert len(list(project.replays.changes(trial.id))) == 3
    with pytest.raises(Refused, match="is a trial"):
        project.replays.commit(trial.id)

    assert project.sources.activate("new", actor="bob", reason="good").state == "active"
    project.runs.start("new")
    assert len(work(project)) == 9
    assert records(project) == 9


def test_report_has_the_evidence_and_takes_nothing_for_markup(project: Project, site: Site) -> None:
    approved(project, site)
    project.sources.trial("new")
    work(project)
    project.sources.activate("new", actor="bob", reason="<b>good</b> | [x](y)")

    found = project.sources.report("new")
    page = markdown(found)

    assert [event.kind.removeprefix("source.") for event in reversed(found.history)] == [
        *("proposed", "compliance_checked", "compliance_checked"),
        *("compliance_checked", "compliance_checked", "approved", "activated"),
    ]
    assert [(each.subject, each.verdict) for each in reversed(found.compliance.checks)] == [
        *(("robots", "allowed"), ("terms", "seen"), ("robots", "allowed"), ("terms", "accepted")),
    ]
    assert json.loads(json.dumps(found.as_json()))["onboarding"]["proposed_by"] == "ann"
    assert "# Onboarding of new" in page
    assert "proposed**: " in page
    assert r"\<b\>good\</b\> \| \[x\](y)" in page
    hash_ = found.compliance.checks[0].hash[:12]
    assert hash_ in page
    assert project.sources.checked_text("new", hash_).text == "Be nice."


def test_terms_that_change_stop_the_source_until_they_are_accepted(
    project: Project, site: Site
) -> None:
    approved(project, site)
    site.pages["/terms"] = "<p>Be  nice.</p><script>nonce = 7</script>"
    assert project.sources.check("new").gaps == []

    site.pages["/terms"] = "<p>Do not read this site.</p>"
    assert project.sources.check("new").gaps == ["its terms have changed since they were accepted"]
    with pytest.raises(Refused, match="terms have changed"):
        project.sources.trial("new")
    with pytest.raises(UsageError, match="needs a reason"):
        project.sources.accept_terms("new")

    assert project.sources.accept_terms("new", reason="asked them").gaps == []


def test_dashboard_shows_a_proposal_that_stands_in_no_file_yet(
    project: Project, site: Site
) -> None:
    proposed(project, site)

    async def steps(at: Served) -> None:
        await at.log_in()
        page = await at.ask("GET", "/sources/new", headers={"Accept": "text/html"})
        assert page.status == 200
        assert "/acts/sources.approve" in page.text
        assert "robots.txt was never checked" in page.text

    visit(project, steps)


def test_site_that_forbids_it_is_not_approved(project: Project, site: Site) -> None:
    proposed(project, site, "/admin/list")

    found = project.sources.check("new")

    assert found.robots_verdict == "disallowed"
    assert found.checks[0].detail == f"it forbids {site.url}/admin/list"
    with pytest.raises(Refused, match=r"robots\.txt does not allow it"):
        project.sources.approve("new")


def test_check_is_possible_in_every_state_and_on_legal_hold(project: Project, site: Site) -> None:
    approved(project, site)
    project.sources.legal_hold("new", reason="a letter")
    with pytest.raises(Refused, match="legal hold: a letter"):
        project.sources.trial("new")
    with pytest.raises(Refused, match="legal hold: a letter"):
        project.sources.probe("new")
    assert project.sources.check("new").gaps == []
    project.sources.retire("new", reason="no")
    assert project.sources.check("new").robots_verdict == "allowed"


def test_approval_that_was_cut_short_after_the_file_goes_on(project: Project, site: Site) -> None:
    proposed(project, site)
    project.sources.accept_terms("new", terms=f"{site.url}/terms", reason="read them")
    write_source(project.settings.file, "new", keys(site))
    written = project.settings.file.read_text()
    with Project.open(project.settings.root) as again:
        with pytest.raises(Refused, match="new is proposed"):
            again.runs.start("new")
        assert again.sources.approve("new").state == "trial"
    assert project.settings.file.read_text() == written


def test_proposal_that_makes_no_sense_is_refused(project: Project) -> None:
    for wrong in ({"connector": "nonsense"}, {"pipeline": "steps:shop", "shedule": {}}):
        with pytest.raises(Refused):
            project.sources.propose("new", keys=wrong)
    with pytest.raises(UsageError, match="say how it is read"):
        project.sources.propose("new")
    with pytest.raises(Refused, match="has a source old already"):
        project.sources.propose("old", keys={"connector": "web"})
    assert project.connection.onboardings.all() == []


def test_project_without_the_setting_notices_nothing(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(FILE.replace("onboarding: {", "metrics: {}\n#"))
    (tmp_path / "onboarding_steps.py").write_text(STEPS)
    with Project.open(tmp_path) as project:
        project.runs.start("old")
        assert len(work(project)) == 9
        assert project.sources.get("old").lifecycle == "active"
        with pytest.raises(Refused, match="active already"):
            project.sources.propose("old")


def test_project_with_the_setting_starts_no_source_of_its_file_by_itself(project: Project) -> None:
    with pytest.raises(Refused, match="old is proposed"):
        project.runs.start("old", new=True)
    with pytest.raises(Refused, match="old is proposed"):
        project.pages.try_("old", "https://acme.com/1")
    for refused in (project.sources.probe, project.sources.trial):
        with pytest.raises(Refused, match="old is proposed"):
            refused("old")
    with Project(project.settings, clock := VirtualClock(project.connection.now())) as later:
        scheduler = Scheduler(later, later.connection)
        scheduler.plan()
        clock.advance(3_700)
        scheduler.tick()
        ticks = later.schedules.ticks("old").items
        assert [(tick.outcome, tick.reason) for tick in ticks] == [("denied", "old is proposed")]
        assert later.runs.list().items == []


def test_trial_sends_no_more_requests_than_it_may(tmp_path: Path, site: Site) -> None:
    file = FILE.replace("trial_pages: 3", "trial_pages: 8, trial_requests: 2")
    (tmp_path / "penstock.yaml").write_text(file)
    (tmp_path / "onboarding_steps.py").write_text(STEPS)
    with Project.open(tmp_path) as project:
        approved(project, site)
        project.sources.trial("new")

        asked = work(project)

        [found] = project.sources.trials("new")
        assert (found.state, found.end_reason, found.requests_limit) == ("partial", "budget", 2)
        assert 1 <= len(asked) <= 3


def test_pipeline_can_only_propose_and_a_trial_not_even_that(project: Project, site: Site) -> None:
    approved(project, site)
    project.sources.trial("new")
    work(project)
    assert project.connection.onboardings.get("found.example") is None
    project.sources.activate("new")
    project.runs.start("new")
    work(project)

    seen = project.sources.onboarding("found.example")

    assert (seen.state, seen.proposed_by, seen.is_configured) == (
        "proposed",
        "pipeline of new",
        False,
    )
    assert seen.keys == {"connector": "web", "sitemap": "https://found.example/map.xml"}
    project.sources.retire("found.example", reason="not for us")
    project.runs.start("new", "full")
    work(project)
    assert project.sources.onboarding("found.example").state == "retired"


def test_words_of_a_page_are_what_a_reader_sees() -> None:
    page = "<head><title>x</title></head><p>Be<b> nice</b>\n &amp; kind<script>n()</script><style>p{}</style>"
    assert words_of(page) == "Be nice & kind"


def test_command_line_leads_through_it(
    project: Project,
    site: Site,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project.settings.root)

    def said(*words: str) -> tuple[int, str, str]:
        code = main(["sources", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    sets = [f"--set={name}={json.dumps(value)}" for name, value in keys(site).items()]
    assert said("propose", "new", *sets, "--reason", "found")[0] == 0
    code, _, error = said("propose", "other", "--set", "nothing")
    assert (code, "--set 'nothing' is not NAME=VALUE" in error) == (2, True)
    code, out, _ = said("check", "new", "--terms", f"{site.url}/terms")
    assert (code, "missing: it has no owner" in out) == (3, True)
    code, _, error = said("approve", "new")
    assert (code, "penstock sources own new OWNER" in error) == (7, True)
    assert said("own", "new", "team")[0] == 0
    code, _, error = said("check", "new", "--accept-terms")
    assert (code, "needs a reason" in error) == (2, True)
    assert said("check", "new", "--accept-terms", "--reason", "read")[0] == 0
    code, out, error = said("approve", "new")
    assert (out, "was written into penstock.yaml" in error) == ("new is in trial\n", True)
    code, out, _ = said("--state", "trial", "--json")
    assert [each["lifecycle"] for each in json.loads(out)] == ["trial"]
    assert "There is no terminal" in said("retire", "new")[2]
    assert said("legal-hold", "new", "--yes")[0] == 2
    assert said("legal-hold", "new", "--yes", "--reason", "a letter")[0] == 0
    assert "on legal hold" in said()[1]
    assert said("legal-release", "new", "--yes", "--reason", "settled")[0] == 0
    assert "trial" in said("report", "new")[1]
