"""Image QA as a pipeline, and the loop that it starts: note, refresh, and in the end a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from penstock.testing import RawResponse
from tests.agents.corpus.sites import Site, site
from tests.agents.pictures import photo_bytes, saved
from tests.agents.site_project import SiteProject

SCHEDULES = {"mapper": {"signal": "site.polluted of images"}}


def _bytes(body: bytes, kind: str = "image/jpeg") -> RawResponse:
    return RawResponse(200, {"content-type": kind}, body)


def _banner(number: int) -> bytes:
    return saved(PIL.Image.new("RGB", (900, 90), (number % 255, 90, 40)), "PNG")


def _trial(
    folder: Path, made: Site, polluted: str = "", store: str = "sqlite:penstock.db"
) -> SiteProject:
    """A site with photos; in each of its galleries stands one more image, which `polluted` writes."""
    trial = SiteProject(folder, made, schedules=SCHEDULES, settings={"store": store})
    for at, (url, truth) in enumerate(made.truth.items()):
        for address in truth["images"]:
            trial.pages[address] = _bytes(photo_bytes(address))
        if not polluted:
            continue
        first = truth["images"][0]
        banner = f"{first.rpartition('/')[0]}/photo77.jpg"
        trial.pages[banner] = _bytes(_banner(at), "image/png")
        html = made.pages[url]
        cut = html.index("<img", html.index("<main>"))
        assert first in html[cut : cut + 200], "the first image of the page is the gallery's"
        if at % 2:  # no place among its like is its own
            cut = html.index(">", cut) + 1
        trial.pages[url] = html[:cut] + polluted.format(src=banner) + html[cut:]
    for name in ("mapper", "validator", "items"):
        assert trial.run(name).state == "completed"
    return trial


def _notes(trial: SiteProject) -> list[dict[str, Any]]:
    return list(trial.schema["pollution_notes"])


def test_clean_galleries_leave_no_note_and_start_nothing(tmp_path: Path) -> None:
    trial = _trial(tmp_path, site(0, 0))

    assert trial.run("images").state == "completed"

    assert _notes(trial) == []
    assert trial.deliver() == []
    assert any("are clean on" in each for each in trial.notes())


def test_a_polluted_gallery_is_learned_again_without_anybody(
    tmp_path: Path, either_store: str
) -> None:
    trial = _trial(tmp_path, site(0, 0), '<img class="wide" src="{src}">', either_store)
    version = trial.schema["version"]

    trial.run("images")

    [note] = _notes(trial)
    assert (note["reason"], note["status"], note["count"]) == ("banner", "open", 1)
    assert len(note["pages"]) > 2
    assert note["images"]
    [refreshed] = trial.deliver()
    assert (refreshed.source, refreshed.state) == ("mapper", "completed")
    assert trial.schema["version"] == version + 1
    assert trial.schema["learned_for"] == "images are to be refreshed"

    trial.run("images")

    assert [each["status"] for each in _notes(trial)] == ["solved"]
    assert trial.deliver() == []
    trial.run("validator")
    trial.run("items")
    images = [url for data in trial.records("items").values() for url in data["images"]]
    assert images
    assert not any("photo77" in url for url in images)


def test_image_qa_twice_on_one_version_counts_one_failure(tmp_path: Path) -> None:
    trial = _trial(tmp_path, site(0, 0), '<img class="wide" src="{src}">')

    trial.run("images")
    trial.run("images")

    assert [each["count"] for each in _notes(trial)] == [1]


def _stubborn(folder: Path, store: str) -> SiteProject:
    """Pollution that has no selector of its own: nothing that the mapper learns excludes it."""
    return _trial(folder, site(0, 0), '<img src="{src}">', store)


def test_a_selector_that_fails_three_times_goes_to_a_person_and_the_loop_ends(
    tmp_path: Path, either_store: str
) -> None:
    trial = _stubborn(tmp_path, either_store)
    rounds = 0
    while True:
        trial.run("images")
        if not trial.deliver():
            break
        rounds += 1
        assert rounds < 10

    assert rounds == 2
    [escalated] = [each for each in _notes(trial) if each["status"] == "escalated"]
    assert escalated["count"] == 3
    [asked] = trial.schema["schema_proposals"]
    about = asked["justification"]
    assert (asked["kind"], asked["status"], about["failures"]) == ("images", "open", 3)
    assert about["selector"] == escalated["selector"]
    assert about["pages"]
    assert about["images"]
    with trial.project() as project:
        signals = [each.name for each in project.connection.signals.newest("site.escalated", 10)]
    assert signals == ["site.escalated"]
    assert "of its proposals is open" in trial.errors(trial.run("items"))[0]

    # Nothing begins again by itself, however often it is looked at.
    trial.run("images")
    assert trial.deliver() == []
    assert len(trial.schema["schema_proposals"]) == 1

    # A new version that has the selector still leaves the question open, and asks no second time.
    trial.run("mapper", force=True)
    trial.run("images")
    assert trial.deliver() == []
    [again] = trial.schema["schema_proposals"]
    assert (again["kind"], again["status"]) == ("images", "open")


def test_a_signal_about_another_site_refreshes_nothing(tmp_path: Path) -> None:
    trial = _trial(tmp_path, site(0, 0))
    with trial.project() as project:
        project.signals.raise_(
            "site.polluted",
            {"domain": "other.example", "force_image_refresh": True},
            source="images",
        )

    [run] = trial.deliver()

    assert run.state == "completed"
    assert trial.schema["version"] == 1


def test_image_qa_of_a_site_that_nobody_has_learned_asks_for_its_mapper(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(0, 0))

    assert trial.run("images").state == "completed"

    assert trial.records("site_schemas") == {}


@pytest.mark.parametrize("body", [b"", b"<html>not found</html>", b"\x89PNG\r\n\x1a\nbroken"])
def test_images_that_are_none_break_no_run(tmp_path: Path, body: bytes) -> None:
    trial = _trial(tmp_path, site(0, 0))
    for url in [each for each in trial.pages if each.endswith("photo0.jpg")]:
        trial.pages[url] = _bytes(body)

    assert trial.run("images").state == "completed"
