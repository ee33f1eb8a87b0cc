"""The connector `github`: the conformance suite by the API and by git, and what is particular to each."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from penstock.app import Project, new_source
from penstock.app.recognition import recognise, target_of
from penstock.connectors.files.paths import key_of
from penstock.connectors.github import GitHub
from penstock.errors import ConfigError
from penstock.settings import load_settings
from penstock.store.rows import RunRow
from penstock.testing import RawResponse, Request, ScriptedNetwork, answer, journal
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place, Trial
from tests.connectors.git_server import GitPlace, GitServer
from tests.connectors.github_server import API, GitHubServer, on_loopback

MILL = "acme/mill"


class ApiPlace(Place):
    """Issues of a repository."""

    connector = "github"
    about = {}  # noqa: RUF012
    own = frozenset({MILL})
    extra: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = GitHubServer(self.secret)
        self.server.add(MILL)
        self.numbers: dict[str, int] = {}

    def keys(self) -> dict[str, Any]:
        return {"repositories": [MILL], "api": API, "token": "${SECRET}", **self.extra}

    def put(self, name: str, text: str) -> bool:
        self.texts[name] = text
        number = self.numbers.setdefault(name, len(self.numbers) + 1)
        self.server.issue(MILL, number, name, text)
        return True

    def remove(self, name: str) -> None:
        del self.texts[name]
        del self.server.repositories[MILL].issues[self.numbers[name]]

    def key(self, name: str) -> str:
        return f"{MILL}/issues/{self.numbers[name]}"

    def lock(self) -> bool:
        self.server.is_locked = True
        return True

    def page(self, request: Request) -> RawResponse:
        return self.server.respond(request)


class FilesPlace(ApiPlace):
    """Files of a repository, by its API."""

    extra = {"read": ["files"]}  # noqa: RUF012

    def put(self, name: str, text: str) -> bool:
        self.texts[name] = text
        self.server.repositories[MILL].files[name] = text.encode("utf-8", "surrogatepass")
        return True

    def remove(self, name: str) -> None:
        del self.texts[name]
        del self.server.repositories[MILL].files[name]

    def key(self, name: str) -> str:
        return f"{MILL}/files/{key_of(name)}"


class TestIssues(ConnectorSuite):
    place = ApiPlace

    def test_a_deleted_item_becomes_a_tombstone_once_and_can_come_back(
        self, tmp_path: Path
    ) -> None:
        """By a full run, which compares."""
        trial = self.start(tmp_path)
        trial.run()
        trial.place.remove("two")
        trial.run()
        key = trial.place.key("two")
        assert key in trial.documents()
        trial.run("full")
        assert trial.records()[key][0]["deleted"] is True
        version = trial.records()[key][1]
        trial.run("full")
        assert trial.records()[key][1] == version
        trial.place.put("two", "the text of two")
        trial.run()
        assert trial.documents()[key]["text"] == "the text of two"

    def test_a_deletion_that_was_undone_is_seen_again(self, tmp_path: Path) -> None:
        """By a full run, too."""
        trial = self.start(tmp_path)
        trial.run()
        trial.place.remove("two")
        second = trial.run("full")
        key = trial.place.key("two")
        with trial.project() as project:
            project.runs.undo(second.id)
        assert key in trial.documents()
        trial.run("full")
        assert key not in trial.documents()


@pytest.mark.torture
class TestManyIssues(TestIssues):
    many = 1_500
    writes = ALL_WRITES


class TestFilesByTheApi(ConnectorSuite):
    place = FilesPlace


def trial_of(folder: Path, **keys: Any) -> tuple[Trial, GitHubServer]:
    place = ApiPlace(folder)
    place.extra = keys
    return Trial(folder, place), place.server


def notes(trial: Trial) -> str:
    with trial.project() as project:
        return "\n".join(event.detail for event in journal(project))


class Failure(NamedTuple):
    key: str
    kind: str
    tries: int
    error: str


def failure(trial: Trial, run: RunRow) -> Failure:
    """The one job that failed."""
    [job] = [job for job in trial.jobs(run) if job.state == "quarantined"]
    return Failure(job.key, job.kind or "", job.tries, job.error or "")


def paths(server: GitHubServer) -> list[str]:
    """What was asked for since, without the address and the query."""
    asked = [url.removeprefix(f"{API}/repos/{MILL}").partition("?")[0] for url in server.asked]
    server.asked.clear()
    server.counted.clear()
    return asked


def filled(server: GitHubServer) -> None:
    """A repository that has something of everything."""
    mill = server.repositories[MILL]
    server.issue(MILL, 1, "Leak", "It leaks, see [photo](https://p.example/1).", state="closed")
    server.issue(
        MILL, 2, "Mend it", "Fixes #1", pull_request={"merged_at": server.tick()}, draft=True
    )
    of = f"{API}/repos/{MILL}"
    row = {"user": {"login": "mona"}, "created_at": server.tick(), "updated_at": server.tick()}
    mill.comments[7] = {**row, "id": 7, "body": "I saw it", "issue_url": f"{of}/issues/1"}
    mill.review_comments[7] = {
        **{**row, "id": 7, "body": "Why?", "path": "gate.py", "line": 3},
        "pull_request_url": f"{of}/pulls/2",
    }
    mill.releases.append(
        {
            **{"id": 3, "tag_name": "v1", "name": "", "body": "First", "author": None},
            "assets": [{"name": "a.zip", "browser_download_url": "https://x/a.zip", "size": 5}],
        }
    )
    server.commit(MILL, "Open the gate\n\nBy hand.")
    mill.files["README.md"] = b"# Mill\n"


EVERYTHING = ["issues", "pulls", "comments", "releases", "commits", "files"]


def test_each_kind_has_its_key_and_what_is_known_of_it(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path, read=EVERYTHING)
    filled(server)
    assert trial.run().state == "completed"
    found = trial.documents()
    sha = server.repositories[MILL].commits[0]["sha"]
    kinds = {key.removeprefix(f"{MILL}/"): document["kind"] for key, document in found.items()}
    assert kinds == {
        MILL: "repository",
        "issues/1": "issue",
        "pulls/2": "pull",
        "comments/7": "comment",
        "review-comments/7": "review-comment",
        "releases/3": "release",
        f"commits/{sha}": "commit",
        "files/README.md": "markdown",
    }
    issue, pull = found[f"{MILL}/issues/1"], found[f"{MILL}/pulls/2"]
    assert (issue["title"], issue["links"]) == ("Leak", ["https://p.example/1"])
    assert (issue["meta"]["state"], issue["meta"]["labels"]) == ("closed", ["bug"])
    assert (issue["meta"]["author"], pull["meta"]["draft"]) == ("octocat", True)
    assert pull["meta"]["merged"] < pull["meta"]["updated"]
    assert found[f"{MILL}/comments/7"]["meta"]["number"] == 1
    review = found[f"{MILL}/review-comments/7"]["meta"]
    assert (review["number"], review["path"], review["line"]) == (2, "gate.py", 3)
    assert found[f"{MILL}/releases/3"]["title"] == "v1"
    commit = found[f"{MILL}/commits/{sha}"]
    assert (commit["title"], commit["meta"]["author_name"]) == ("Open the gate", "Mona")
    assert "mona@" not in str(commit)


def test_what_is_unchanged_takes_one_request_for_each_listing_that_is_not_counted(
    tmp_path: Path,
) -> None:
    trial, server = trial_of(tmp_path, read=EVERYTHING)
    filled(server)
    server.repositories[MILL].about = {"stargazers_count": 1}
    trial.run()
    paths(server)
    run = trial.run()
    assert server.counted == []
    assert paths(server) == [
        "",
        "/issues",
        "/issues/comments",
        "/pulls/comments",
        "/releases",
        "/commits",
        "/git/trees/HEAD",
    ]
    assert [job.stage for job in trial.jobs(run)] == ["discover"]


def test_every_issue_of_many_pages_is_read_also_if_a_page_was_written_in_one_second(
    tmp_path: Path,
) -> None:
    trial, server = trial_of(tmp_path, read=["issues"])
    for number in range(1, 381):
        server.issue(MILL, number, f"issue {number}", "x", after=0 if 90 < number < 340 else 90)
    trial.run()
    assert len(trial.documents()) == 381
    paths(server)
    server.issue(MILL, 5, "issue 5", "y")
    run = trial.run()
    assert trial.items_read(run) == [f"{MILL}/issues/5"]
    assert all("since=" in url for url in server.asked[1:])
    assert len(trial.documents()) == 381


def test_what_changes_while_it_is_listed_is_read_as_it_is_then_by_the_next_run(
    tmp_path: Path,
) -> None:
    trial, server = trial_of(tmp_path, read=["issues"])
    for number in range(1, 351):
        server.issue(MILL, number, f"issue {number}", "before")
    issues, requests = server.repositories[MILL].issues, trial.place.requests

    def change() -> None:
        if len(requests) == 3:
            del issues[320]
            for number in range(1, 260):
                server.issue(MILL, number, f"issue {number}", "after")

    trial.place.on_read = change
    trial.run()
    trial.place.on_read = lambda: None
    trial.run()
    documents = trial.documents()
    for number, row in issues.items():
        assert documents[f"{MILL}/issues/{number}"]["text"] == row["body"], number


def test_commits_that_a_merge_brings_from_long_ago_are_read_and_no_others(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path, read=["commits"])
    for number in range(150):
        server.commit(MILL, f"commit {number}")
    trial.run()
    assert len(trial.documents()) == 151
    rows = server.repositories[MILL].commits
    head = rows[0]["sha"]
    old = {**rows[-1], "sha": "ab" * 20, "parents": [{"sha": rows[-1]["sha"]}]}
    rows.insert(-1, old)
    merge = server.commit(MILL, "merge", [head, old["sha"]])
    paths(server)
    run = trial.run()
    assert sorted(trial.items_read(run)) == sorted(
        f"{MILL}/commits/{each}" for each in (merge, old["sha"])
    )
    assert paths(server) == ["", "/commits", f"/compare/{head}...{merge}"]


def test_a_history_that_was_rewritten_is_read_again(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path, read=["commits"])
    server.commit(MILL, "one")
    trial.run()
    server.repositories[MILL].commits.clear()
    new = server.commit(MILL, "another one")
    trial.run()
    assert f"{MILL}/commits/{new}" in trial.documents()
    assert "its history was rewritten" in notes(trial)
    trial.run("full")
    assert set(trial.documents()) == {MILL, f"{MILL}/commits/{new}"}


LIMITED = [
    answer("", status=403, headers={"Retry-After": "60"}),
    answer("", status=429, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"}),
    answer(
        '{"message": "You have exceeded a secondary rate limit"}',
        status=403,
        headers={"Content-Type": "application/json"},
    ),
]


def test_limits_are_waited_for_and_cost_no_try(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path)
    filled(server)
    trial.place.answers = list(LIMITED)
    run = trial.run()
    assert (run.state, run.retried, run.throttled) == ("completed", 0, 3)
    moments = [at for at, _ in trial.place.requests[:4]]
    assert all(later - earlier >= 60 for earlier, later in pairwise(moments))


@pytest.mark.parametrize("kind", ["incremental", "full"])
def test_a_limit_in_the_middle_of_a_listing_makes_no_page_count_twice(
    kind: str, tmp_path: Path
) -> None:
    class Limited(ApiPlace):
        def page(self, request: Request) -> RawResponse:
            if len(self.requests) == 4:
                self.answers = [LIMITED[0]]
            return super().page(request)

    place = Limited(tmp_path)
    place.extra = {"read": ["issues"]}
    place.server.repositories[MILL].about = {"stargazers_count": 1}
    for number in range(450):
        place.put(f"issue {number}", "text")
    trial = Trial(tmp_path, place)
    assert trial.run(kind).state == "completed"
    assert len(trial.documents()) == 451
    assert len(place.server.counted) == len(set(place.server.counted)) == 6


def test_a_refusal_for_want_of_rights_is_not_tried_again(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path)
    server.repositories[MILL].refusals["issues"] = 403
    run = trial.run()
    failed = failure(trial, run)
    assert (failed.kind, failed.tries) == ("auth", 1)


def test_a_renamed_repository_is_followed_and_its_documents_keep_their_keys(
    tmp_path: Path,
) -> None:
    trial, server = trial_of(tmp_path, read=["issues"])
    for number in range(1, 151):
        server.issue(MILL, number, f"issue {number}", "x")
    trial.run()
    moved = server.repositories.pop(MILL)
    moved.name = "acme/watermill"
    server.repositories[moved.name], server.renamed[MILL] = moved, moved.name
    server.issue(moved.name, 5, "issue 5", "y")
    run = trial.run()
    assert run.state == "completed"
    assert trial.documents()[f"{MILL}/issues/5"]["text"] == "y"
    assert f"{MILL} is called acme/watermill now" in notes(trial)


def test_what_is_empty_disabled_or_blocked_is_noted_and_no_failure(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path, read=EVERYTHING)
    server.repositories[MILL].refusals = {"issues": 410, "issues/comments": 451}
    assert trial.run().state == "completed"
    assert set(trial.documents()) == {MILL}
    told = notes(trial)
    assert f"{MILL}/issues: they are disabled" in told
    assert f"{MILL}/comments: it is blocked for legal reasons" in told
    assert f"{MILL}/commits: the repository is empty" in told


def test_one_repository_that_is_not_there_fails_alone(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path, repositories=["acme/gone", MILL])
    filled(server)
    run = trial.run()
    failed = failure(trial, run)
    assert (run.state, failed.key, failed.kind) == ("partial", "acme/gone", "permanent")
    assert "the token may not see it" in failed.error
    assert f"{MILL}/issues/1" in trial.documents()


def test_a_branch_that_is_not_there_fails_alone(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path, read=EVERYTHING, branch="next")
    filled(server)
    run = trial.run()
    failed = {job.key: job.error for job in trial.jobs(run) if job.state == "quarantined"}
    assert run.state == "partial"
    words = f"Permanent: {MILL} has no branch next"
    assert failed == {f"{MILL}/commits": words, f"{MILL}/files": words}
    assert f"{MILL}/issues/1" in trial.documents()


def test_of_an_owner_all_are_read_but_forks_archived_ones_and_what_patterns_leave_out(
    tmp_path: Path,
) -> None:
    place = ApiPlace(tmp_path)
    place.extra = {"owner": "acme", "repositories": ["!old-*"], "read": ["issues"]}
    server = place.server
    for name in ("web", "old-web", "fork", "archive"):
        server.add(f"acme/{name}", fork=name == "fork", archived=name == "archive")
    server.add("other/web")
    trial = Trial(tmp_path, place)
    assert trial.run().state == "completed"
    assert set(trial.documents()) == {MILL, "acme/web"}


def test_a_listing_does_not_lead_to_another_host(tmp_path: Path) -> None:
    class Elsewhere(ApiPlace):
        def page(self, request: Request) -> RawResponse:
            found = super().page(request)
            link = {"link": '<https://evil.example/issues?page=2>; rel="next"'}
            if "/issues?" in request.url:
                found = msgspec.structs.replace(found, headers={**found.headers, **link})
            return found

    place = Elsewhere(tmp_path)
    place.put("one", "text")
    trial = Trial(tmp_path, place)
    run = trial.run()
    assert {job.kind for job in trial.jobs(run) if job.state == "quarantined"} == {"data"}
    assert all(url.startswith(API) for _, url in place.requests)


def test_an_answer_that_is_not_the_apis_is_bad_data(tmp_path: Path) -> None:
    trial, _ = trial_of(tmp_path)
    trial.place.answers = [answer("<html>Sign in</html>")]
    run = trial.run()
    failed = failure(trial, run)
    assert failed.kind == "data"
    assert "is not what GitHub's API answers" in failed.error


def test_a_release_that_was_deleted_is_a_tombstone_at_once(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path)
    filled(server)
    trial.run()
    server.repositories[MILL].releases.clear()
    trial.run()
    assert trial.records()[f"{MILL}/releases/3"][0]["deleted"] is True
    assert f"{MILL}/issues/1" in trial.documents()


def test_another_token_reads_nothing_again(tmp_path: Path) -> None:
    trial, server = trial_of(tmp_path)
    filled(server)
    trial.run()
    trial.place.secret = server.token = "another-s3cr3t"  # type: ignore[misc]
    assert trial.items_read(trial.run()) == []


def test_a_tree_that_is_too_large_to_be_listed_at_once_is_listed_by_folders(
    tmp_path: Path,
) -> None:
    trial, server = trial_of(tmp_path, read=["files"])
    server.most_entries = 6
    files = {f"{a}/{b}/{c}": b"x" for a in "ab" for b in "cd" for c in "efg"}
    server.repositories[MILL].files = {**files, "top": b"y"}
    assert trial.run().state == "completed"
    keys = {key.removeprefix(f"{MILL}/files/") for key in trial.documents()} - {MILL}
    assert keys == {*files, "top"}


def test_links_submodules_and_what_is_too_large_or_not_meant_are_left_out(tmp_path: Path) -> None:
    trial, server = trial_of(
        tmp_path, read=["files"], max_bytes="1KB", include=["*.md"], exclude=["drafts/"]
    )
    server.repositories[MILL].files = {
        "a.md": b"a",
        "large.md": b"x" * 2000,
        "drafts/b.md": b"b",
        "c.txt": b"c",
    }
    server.repositories[MILL].entries = [
        {"path": "link.md", "mode": "120000", "type": "blob", "sha": "11" * 20, "size": 3},
        {"path": "other", "mode": "160000", "type": "commit", "sha": "22" * 20},
    ]
    trial.run()
    assert set(trial.documents()) == {MILL, f"{MILL}/files/a.md"}
    told = notes(trial)
    for words in ("1 file that are links", "that are submodules", "larger than max_bytes (1,000)"):
        assert words in told


@pytest.mark.parametrize("place", [FilesPlace, GitPlace])
def test_a_renamed_file_is_recognised_by_its_content(place: type[Place], tmp_path: Path) -> None:
    made = place(tmp_path)
    made.put("old.md", "# the same")
    made.put("stays.md", "# stays")
    trial = Trial(tmp_path, made)
    trial.run()
    old, new = made.key("old.md"), made.key("docs/new.md")
    made.remove("old.md")
    made.put("docs/new.md", "# the same")
    trial.run()
    assert trial.records()[new][0]["moved_from"] == old
    assert trial.records()[old][0] == {"key": old, "deleted": True, "moved_to": new}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({}, "repositories: is missing; name repositories, an owner or a url"),
        ({"repositories": ["mill"]}, "needs owner/name, not mill"),
        ({"repositories": ["a/.."]}, "needs repositories such as octocat/hello-world"),
        ({"repositories": [MILL], "url": "x"}, "url: can't stand beside repositories"),
        ({"owner": "acme", "repositories": [MILL]}, "with owner, needs a name alone"),
        ({"repositories": [MILL], "read": ["isues"]}, "did you mean 'issues'?"),
        ({"repositories": [MILL], "since": "soon"}, "must be a date such as 2026-01-31"),
        ({"repositories": [MILL], "branch": "../x"}, "must be the name of a branch"),
        ({"url": "ssh://git@host/x"}, "ssh is not read"),
        ({"url": "https://me:word@host/x"}, "must not hold a password"),
        ({"repositories": [MILL], "api": "api.github.com"}, "must be an address such as"),
    ],
)
def test_a_mistake_in_the_keys_is_told_with_its_place(
    keys: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    source = json.dumps({"connector": "github", **keys})
    (tmp_path / "penstock.yaml").write_text(f"sources:\n  a: {source}\n")
    with pytest.raises(ConfigError, match=re.escape(problem)):
        load_settings(tmp_path)


def test_the_token_is_bound_to_its_origin_and_robots_do_not_apply(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(
        "sources:\n  a: {connector: github, repositories: [a/b], token: t0ken}\n"
        "  b: {connector: github, url: 'https://git.example/x.git', token: t0ken, "
        "fetch: {robots: true}}\n"
    )
    sources = load_settings(tmp_path).sources
    api, git = sources["a"].fetch, sources["b"].fetch
    assert api.headers_for["https://api.github.com"]["Authorization"] == "Bearer t0ken"
    assert set(git.headers_for) == {"https://git.example"}
    assert (api.robots, git.robots) == (False, True)
    assert "t0ken" not in repr(sources)


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ("https://github.com/octocat/hello-world", {"repositories": ["octocat/hello-world"]}),
        ("github.com/octocat/hello.git", {"repositories": ["octocat/hello"]}),
        ("https://github.com/octocat/hello/issues/3", {"repositories": ["octocat/hello"]}),
        ("https://github.com/octocat", {"owner": "octocat"}),
        ("https://git.example/team/repo.git", {"url": "https://git.example/team/repo.git"}),
    ],
)
def test_what_penstock_add_is_pointed_at_is_recognised_unseen(
    target: str, keys: dict[str, Any], tmp_path: Path
) -> None:
    [(connector, found)] = recognise(tmp_path, target)
    assert (connector, found.keys) == ("github", keys)


def test_a_bare_repository_is_recognised_and_pages_of_github_itself_are_not(tmp_path: Path) -> None:
    GitHub.sample(tmp_path / "demo")
    found = recognise(tmp_path, str(tmp_path / "demo" / "repo.git"))
    assert (found[0][0], found[0][1].keys) == ("github", {"url": "./demo/repo.git"})
    target = target_of(tmp_path, "https://github.com/pricing")
    assert asyncio.run(GitHub.recognise(target)) is None


def test_penstock_add_shows_a_sample_of_a_repository_and_writes_it(tmp_path: Path) -> None:
    server = GitHubServer(api="https://api.github.com")
    server.add(MILL)
    filled(server)

    async def script(request: Request) -> RawResponse:
        return server.respond(request)

    network = ScriptedNetwork(script)
    proposal = new_source.propose(tmp_path, new_source.Wish(f"https://github.com/{MILL}"), network)
    added = new_source.add(tmp_path, proposal, network=network)
    assert (added.source, [each.title for each in added.samples][:2]) == ("mill", [MILL, "Leak"])
    assert list(load_settings(tmp_path).sources["mill"].options["repositories"]) == [MILL]


def test_over_real_sockets_the_command_reads_the_api_and_a_git_server(tmp_path: Path) -> None:
    git = GitServer(tmp_path / "server")
    git.files = {"README.md": b"# By git\n", "docs/a.txt": b"a" * 100_000}
    server = GitHubServer()

    def respond(request: Request) -> RawResponse:
        return (git if "/repo.git/" in request.url else server).respond(request)

    with on_loopback(respond) as address:
        server.api = address
        server.add(MILL)
        filled(server)
        for number in range(3, 120):
            server.issue(MILL, number, f"issue {number}", "x")
        fetch = {"allow_private": True}
        sources = {
            "api": {"repositories": [MILL], "api": address, "read": EVERYTHING, "fetch": fetch},
            "git": {"url": f"{address}/repo.git", "fetch": fetch},
        }
        for source in sources.values():
            source["connector"] = "github"
        (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": sources}))
        for name, number in (("api", 125), ("git", 2)):
            made = subprocess.run(
                [sys.executable, "-m", "penstock", "run", name, "--json"],
                cwd=tmp_path,
                capture_output=True,
                text=True,
            )
            assert made.returncode == 0, made.stderr
            with Project.load(tmp_path) as project:
                assert len(list(project.records(name))) == number


def test_reviews_are_read_of_pull_requests_that_were_updated_and_of_no_other(
    tmp_path: Path,
) -> None:
    trial, server = trial_of(tmp_path, read=["pulls", "reviews"])
    for number in (1, 2):
        server.issue(MILL, number, f"pull {number}", "body", pull_request={"merged_at": None})
    server.issue(MILL, 3, "an issue", "body")
    for number in range(150):
        server.review(MILL, 1, "COMMENTED", f"remark {number}")
    first = server.review(MILL, 2, "CHANGES_REQUESTED", "no *wheel*")
    assert trial.run().state == "completed"
    found = {key: each for key, each in trial.documents().items() if each["kind"] == "review"}
    assert len(found) == 151
    document = found[f"{MILL}/reviews/{first['id']}"]
    assert document["text"] == "no *wheel*"
    assert {"number": 2, "state": "changes_requested", "author": "hubot"}.items() <= document[
        "meta"
    ].items()

    server.asked.clear()
    second = server.review(MILL, 2, "APPROVED", "good")
    trial.run()
    assert f"{MILL}/reviews/{second['id']}" in trial.documents()
    assert sum("/reviews" in each for each in server.asked) == 1
    server.asked.clear()
    trial.run()
    assert not any("/reviews" in each for each in server.asked)

    run = trial.run("full")
    trial.place.take_away()
    assert run.state == "completed"
    assert not any(data.get("deleted") for data, _ in trial.records().values())
    with trial.project() as project:
        replay = project.replays.start(run.id)
        trial.work(project)
        assert project.require_run(replay.run.id).state == "completed"
        totals = project.replays.diff(replay.run.id).totals
        assert (totals.added, totals.changed, totals.removed) == (0, 0, 0)
