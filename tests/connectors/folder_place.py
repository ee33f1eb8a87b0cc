"""A folder, for the conformance suite."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from typing import Any

from penstock.connectors.files.paths import key_of
from penstock.testing.connectors import Place


class FolderPlace(Place):
    connector = "files"
    _ticks = itertools.count(1_700_000_000_000_000_000, 1_000_000_000)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = folder / "files"
        self.root.mkdir()

    def keys(self) -> dict[str, Any]:
        return {"folder": "./files", "hidden": True}

    def _file(self, name: str) -> Path:
        return self.root / f"{name.replace('/', '∕')}.txt"

    def put(self, name: str, text: str) -> bool:
        file = self._file(name)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        # Two writes within one tick of the file system's clock would look like one.
        os.utime(file, ns=(0, next(self._ticks)))
        self.texts[name] = text
        return True

    def remove(self, name: str) -> None:
        self._file(name).unlink()
        del self.texts[name]

    def key(self, name: str) -> str:
        return key_of(self._file(name).name)

    def lock(self) -> bool:
        if os.geteuid() == 0:
            return False  # nothing is refused to root
        self.root.chmod(0)
        return True

    def take_away(self) -> None:
        super().take_away()
        shutil.rmtree(self.root)
