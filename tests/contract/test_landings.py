"""Files that land: each starts one run, once, and again when it has changed."""

from __future__ import annotations

import threading
from contextlib import closing

from penstock.store.upkeep import Keep
from tests.contract.scenes import World

DAY_S = 86_400.0


def land(world: World, **files: str) -> int | None:
    return world.store.files.land(world.source(), "main", files, "watch")


def test_files_land_together_as_one_signal(world: World) -> None:
    signal_id = land(world, b="1", a="1")
    [signal] = world.store.deliveries.open_signals()
    assert signal.id == signal_id
    assert (signal.name, signal.source) == ("file.landed", "acme.com")
    assert signal.data == {"schedule": "main", "files": ["a", "b"]}
    assert world.store.files.landed(world.source(), "main") == {"a": "1", "b": "1"}


def test_what_has_landed_lands_again_only_when_it_has_changed(world: World) -> None:
    land(world, a="1", b="1")
    assert land(world, a="1", b="1") is None
    land(world, a="1", b="2", c="1")
    assert world.store.deliveries.open_signals()[-1].data["files"] == ["b", "c"]


def test_another_schedule_sees_them_for_itself(world: World) -> None:
    land(world, a="1")
    assert world.store.files.land(world.source(), "other", {"a": "1"}, "watch") is not None
    assert world.store.files.land(world.source("b.com"), "main", {"a": "1"}, "watch") is not None


def test_of_many_who_see_a_file_land_one_signals_it(world: World) -> None:
    files = {f"f{n}": "1" for n in range(50)}
    source_id, barrier = world.source(), threading.Barrier(3)
    answers: list[int | None] = []

    def see() -> None:
        with closing(world.kind.open(world.path, world.clock)) as store:
            barrier.wait()
            answers.append(store.files.land(source_id, "main", files, "watch"))

    threads = [threading.Thread(target=see) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in answers if one is not None]) == 1
    [signal] = world.store.deliveries.open_signals()
    assert len(signal.data["files"]) == 50


def test_a_disk_that_was_away_for_a_while_brings_nothing_new(world: World) -> None:
    land(world, a="1", b="1")
    world.store.files.note_gone(world.source(), "main", ["a", "b"])
    assert world.store.files.landed(world.source(), "main") == {}
    assert land(world, a="1", b="2") is not None
    assert world.store.deliveries.open_signals()[-1].data["files"] == ["b"]
    assert world.store.files.landed(world.source(), "main") == {"a": "1", "b": "2"}


def test_what_has_gone_long_ago_is_forgotten_and_what_is_there_is_not(world: World) -> None:
    land(world, a="1", b="1")
    world.store.files.note_gone(world.source(), "main", ["b"])
    world.clock.advance(100 * DAY_S)
    while world.store.upkeep.prune(Keep(None, DAY_S, None, None)):
        pass
    assert land(world, a="1") is None
    assert land(world, b="1") is not None


def test_names_that_no_database_takes_land_once(world: World) -> None:
    name = "caf\udce9.json"
    assert world.store.files.land(world.source(), "main", {name: "1"}, "watch") is not None
    assert world.store.files.land(world.source(), "main", {name: "1"}, "watch") is None
