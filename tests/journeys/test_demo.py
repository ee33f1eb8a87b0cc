"""`penstock demo` and `penstock init`, as a newcomer meets them: the real command in a subprocess."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

from penstock.demo.folder import lay_out
from penstock.demo.site import Site
from tests.journeys.rig import ENVIRONMENT, PENSTOCK

UNDER_A_MINUTE_S = 60

RECORDS = {"product": 208, "article": 36, "offer": 39}
# Rejected candidates are skipped jobs too, beside three pages that robots.txt forbids and an article
# that is not written yet.
FIRST = {
    "catalogue": {
        **{"pages": 220, "candidates": 217, "saved": 212, "rejected": 5, "skipped": 3},
        **{"inserted": 208, "updated": 0, "unchanged": 4, "quarantined": 0, "retried": 0},
    },
    "news": {
        **{"pages": 40, "candidates": 39, "saved": 36, "rejected": 3, "skipped": 1},
        **{"inserted": 36, "updated": 0, "unchanged": 0, "quarantined": 0, "retried": 0},
    },
    "flaky": {
        **{"pages": 45, "candidates": 39, "saved": 39, "rejected": 0, "skipped": 0},
        **{"inserted": 39, "updated": 0, "unchanged": 0, "quarantined": 6},
    },
}
STATES = {"catalogue": "completed", "news": "completed", "flaky": "partial"}


def run(
    *arguments: str, cwd: Path, within_s: float = UNDER_A_MINUTE_S
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=within_s,
    )


def demo(cwd: Path) -> dict[str, Any]:
    done = run("demo", "--dir", "here", "--short", "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def counts(summary: dict[str, Any], source: str) -> dict[str, int]:
    found: dict[str, int] = summary["sources"][source]["counts"]
    return {name: found[name] for name in FIRST[source]}


def test_demo_ingests_three_sources_and_doubles_nothing_when_run_again(tmp_path: Path) -> None:
    first = demo(tmp_path)
    assert {name: each["state"] for name, each in first["sources"].items()} == STATES
    assert {source: counts(first, source) for source in FIRST} == FIRST
    flaky = first["sources"]["flaky"]["counts"]
    # At least: a machine that is busy may time out on a page that would have answered.
    assert flaky["retried"] >= 17
    assert flaky["throttled"] >= 8
    assert first["totals"]["pages"] == 305
    assert first["records"] == {"before": {}, "after": RECORDS}

    second = demo(tmp_path)
    assert {name: each["state"] for name, each in second["sources"].items()} == STATES
    for source, expected in FIRST.items():
        accepted = expected["saved"]
        again = {**expected, "inserted": 0, "unchanged": accepted}
        assert counts(second, source) == again
    assert second["records"] == {"before": RECORDS, "after": RECORDS}


def test_tour_shows_each_promise_with_a_command_that_can_be_typed(tmp_path: Path) -> None:
    done = run("demo", "--dir", "here", "--json", cwd=tmp_path, within_s=90)
    assert done.returncode == 0, done.stderr
    tour = json.loads(done.stdout)["tour"]

    typed = [command for stop in tour for command in stop["commands"]]
    assert [command["exit_code"] for command in typed] == [0, 0, 0, 3, 0, 0, 0, 0, 0]
    only_what_changed, archive, breaker, metered, budget, replay, dropped, source, job = [
        command["output"] for command in typed
    ]
    assert "skipped 214 unchanged pages" in only_what_changed
    assert "completed, 24 of 24 pages" in archive
    for what in ("breaker.opened", "breaker.half-open", "breaker.closed"):
        assert what in breaker
    assert "metered (full): budget" in metered
    assert "20" in budget
    assert "changed  191" in replay
    assert "removed  14" in replay
    assert "dropped: what replay" in dropped
    assert "6 quarantined" in source
    assert "waits for you: penstock retry" in job
    assert "JSONDecodeError" in job


def test_readme_shows_the_numbers_that_the_demo_gives() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    shown = [line.split() for line in readme.splitlines()]
    for name in FIRST["flaky"]:
        assert [name, *(str(FIRST[source][name]) for source in FIRST)] in [row[:4] for row in shown]


def test_demo_stopped_by_ctrl_c_goes_on_and_ends_with_every_record_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PENSTOCK, "demo", "--short"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ) as begun:
        assert begun.stdout is not None
        for line in begun.stdout:
            if line.startswith("catalogue: running"):
                break
        begun.send_signal(signal.SIGINT)
        rest = begun.stdout.read()
        assert begun.wait(timeout=120) == 130
    assert "run the same command to continue" in rest

    told = demo_with_dashboard(tmp_path)

    assert "flaky: partial. 6 of its pages" in told
    assert_suggestions_work(told, tmp_path)
    held = run(
        "records", "product", "--format", "jsonl", "--project", "penstock-demo", cwd=tmp_path
    )
    keys = [json.loads(line)["key"] for line in held.stdout.splitlines()]
    assert len(keys) == len(set(keys)) == RECORDS["product"]


def demo_with_dashboard(cwd: Path) -> str:
    """What it says until it serves its dashboard, whose link leads a browser to the demo's sources."""
    lines = []
    with subprocess.Popen(
        [*PENSTOCK, "demo", "--short", "--web"],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        for line in serving.stdout:
            lines.append(line)
            if line.startswith("open this link, once: "):
                break
        link = lines[-1].split()[-1]
        browser = build_opener(HTTPCookieProcessor())
        browser.open(link).close()
        with browser.open(link.partition("/login")[0] + "/sources") as page:
            shown = page.read().decode()
        assert all(f"/sources/{name}" in shown for name in ("catalogue", "news", "flaky"))
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=120) == 0
    return "".join(lines)


def assert_suggestions_work(output: str, cwd: Path) -> None:
    _, _, tail = output.partition("Three things to try next:\n")
    paragraph = tail.partition("\n\n")[0]
    suggested = [shlex.split(line) for line in paragraph.splitlines() if line.strip()]
    assert len(suggested) == 3
    for command in suggested[:2]:
        done = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    assert suggested[2][-3:] == ["demo", "--dir", "penstock-demo"]


def test_demo_refuses_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    done = run("demo", "--dir", ".", cwd=tmp_path)
    assert done.returncode == 7
    assert "not empty" in done.stderr
    assert "Traceback" not in done.stderr


def test_demo_says_which_source_is_paused_instead_of_waiting_for_it(tmp_path: Path) -> None:
    lay_out(tmp_path / "here", {"catalogue": 1, "news": 2, "flaky": 3, "archive": 4})
    assert run("pause", "flaky", "--project", "here", cwd=tmp_path).returncode == 0
    done = run("demo", "--dir", "here", cwd=tmp_path)
    assert done.returncode == 7
    assert "flaky is paused" in done.stderr
    assert "resume flaky" in done.stderr


def test_first_project_runs_as_it_is_written_once_it_names_a_site(tmp_path: Path) -> None:
    made = run("init", "shop-watch", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    project = tmp_path / "shop-watch"
    with Site() as site:
        config = (project / "penstock.yaml").read_text()
        config = config.replace("https://example.com", site.origins["catalogue"])
        config = config.replace(
            "limits: {concurrency: 4, rate: 60/m}", "fetch: {allow_private: true}"
        )
        (project / "penstock.yaml").write_text(config)

        done = run("run", "example.com", cwd=project)

    assert done.returncode == 0, done.stderr
    held = run("records", "product", "--format", "jsonl", cwd=project)
    records = [json.loads(line)["data"] for line in held.stdout.splitlines()]
    assert len(records) == 217
    lamp = next(each for each in records if each["url"].endswith("/product/1"))
    assert (lamp["name"], lamp["price"]) == ("Brass lamp", "42.05")


def test_pipeline_that_the_guide_arrives_at_runs(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "first-pipeline.md").read_text("utf-8")
    first = (files("penstock.demo") / "first" / "products.py").read_text("utf-8")
    head, _, _ = first.partition("@products.step")
    blocks = [block.partition("```")[0] for block in guide.split("```python\n")[1:]]
    (tmp_path / "products.py").write_text(head + "\n".join(blocks))
    with Site() as site:
        (tmp_path / "penstock.yaml").write_text(
            f"""
project: guide
sources:
  shop:
    pipeline: products:products
    params: {{sitemap: "{site.origins["catalogue"]}/sitemap.xml", at_most: 50}}
    fetch: {{allow_private: true}}
"""
        )
        done = run("run", "shop", "--json", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["counts"]
    # Of fifty pages, one is the staff's.
    assert (found["pages"], found["accepted"], found["skipped"]) == (50, 49, 1)


def test_guide_followed_to_the_letter_updates_its_records_and_doubles_none(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "first-pipeline.md").read_text("utf-8")
    discover, *better = [block.partition("```")[0] for block in guide.split("```python\n")[1:]]
    project = tmp_path / "shop-watch"
    assert run("init", "shop-watch", cwd=tmp_path).returncode == 0
    steps = project / "products.py"
    head, _, rest = steps.read_text().partition("@products.step")
    _, _, later = rest.partition("@products.step")
    steps.write_text(f"{head}{discover}\n\n@products.step{later}")
    with Site() as site:
        config = (project / "penstock.yaml").read_text()
        config = config.replace("https://example.com", site.origins["catalogue"])
        config = config.replace('sitemap.xml"}', 'sitemap.xml", at_most: 50}')
        config = config.replace("rate: 60/m", "rate: 6000/m")
        config += "    fetch: {allow_private: true}\n"
        (project / "penstock.yaml").write_text(config)
        assert run("run", "example.com", cwd=project).returncode == 0
        before = keys_of(project)

        steps.write_text(head + "\n".join([discover, *better]))
        done = run("run", "example.com", "--json", cwd=project)

    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)["counts"]
    assert (counts["inserted"], counts["updated"], counts["skipped"]) == (0, 49, 1)
    assert keys_of(project) == before
    assert len(before) == 49  # one of the fifty is kept from us by robots.txt


def keys_of(project: Path) -> list[str]:
    held = run("records", "product", "--format", "jsonl", cwd=project)
    return [json.loads(line)["key"] for line in held.stdout.splitlines()]


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "products.py").write_text("mine = True\n")
    done = run("init", cwd=tmp_path)
    assert done.returncode == 7
    assert "products.py exists already" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["products.py"]


def test_init_keeps_a_gitignore(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    done = run("init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Your .gitignore was kept" in done.stdout
    assert (tmp_path / ".gitignore").read_text() == "*.log\n"
    assert (tmp_path / "penstock.yaml").exists()
