"""Names for a shell that completes them: the same from every database, and nothing is written for them."""

from __future__ import annotations

from pathlib import Path

from penstock.settings.address import SQLITE
from penstock.store.peek import Value, peek
from tests.contract.scenes import World, fill


def test_names_are_read_without_a_write(world: World) -> None:
    fill(world)
    address = f"{SQLITE}{world.path}" if isinstance(world.path, Path) else world.path
    before = world.kind.dump(world.path)

    def found(query: str, **values: Value) -> list[tuple[str, str]]:
        usual: dict[str, Value] = {"source": None, "collection": None, "prefix": "", "limit": 50}
        return peek(address, Path("/"), query, **(usual | values))

    assert found("complete_runs") == [("2", "news full failed"), ("1", "acme.com full completed")]
    assert found("complete_runs", source="news") == [("2", "news full failed")]
    assert found("complete_runs", prefix="1") == [("1", "acme.com full completed")]
    assert found("complete_jobs") == [("2", "news discover")]
    assert found("complete_stages", prefix="p") == [("persist", "")]
    assert [stage for stage, _ in found("complete_stages")] == ["discover", "extract", "persist"]
    assert found("complete_stages", source="nowhere") == []
    assert found("complete_causes", source="news") == [("no price", "1 failed")]
    assert found("complete_collections") == [("product", "3 records")]
    assert found("complete_keys", collection="product", prefix="blue t")[0] == ("blue two", "")
    assert found("complete_partitions", source="acme.com") == [("eur", "7"), ("usd", "8")]
    assert found("complete_breakers", prefix="cdn") == [("cdn.example.com", "open")]
    assert world.kind.dump(world.path) == before
