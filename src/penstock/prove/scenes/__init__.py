"""The scenes: one kind of fault each, and what must hold in spite of it."""

from __future__ import annotations

from penstock.prove.scenes import clock, disk, kills, network, server, stops, writes
from penstock.prove.scenes.stage import Scene

# In this order: what finds the most in the least time first.
SCENES: dict[str, Scene] = {
    scene.name: scene
    for scene in (
        kills.SCENE,
        network.SCENE,
        clock.SCENE,
        writes.SCENE,
        disk.SCENE,
        stops.SCENE,
        server.SCENE,
    )
}
