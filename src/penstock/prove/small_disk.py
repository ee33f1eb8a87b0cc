"""A file system that is soon full, where one can be mounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SMALL_MB, LARGE_MB = 12, 200


class SmallDisk:
    """A file system in memory, mounted at a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def why_not() -> str:
        """Empty where one can be mounted, as far as can be told without trying."""
        if os.geteuid() != 0:
            return "only root may mount a file system"
        return "" if shutil.which("mount") and shutil.which("umount") else "there is no `mount`"

    def __enter__(self) -> SmallDisk:
        self.folder.mkdir(exist_ok=True)
        self._mount(f"size={SMALL_MB}m,mode=0700")
        return self

    def __exit__(self, *_: object) -> None:
        # Detached at once: a process that was just killed may have a file open for a moment more.
        words = ["umount", "--lazy", str(self.folder)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(f"unmounting {self.folder} failed: {done.stderr.strip()}")

    def grow(self) -> None:
        """Let there be space again."""
        self._mount(f"remount,size={LARGE_MB}m,mode=0700")

    def _mount(self, options: str) -> None:
        words = ["mount", "-t", "tmpfs", "-o", options, "penstock-small-disk", str(self.folder)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(f"mounting a small file system failed: {done.stderr.strip()}")
