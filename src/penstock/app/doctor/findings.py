"""Making findings: each area yields them, and says its name once."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.app.views.doctor import CheckupFindingView, State
from penstock.errors import PenstockError
from penstock.shell import command_of


@dataclass(frozen=True, slots=True)
class Area:
    """What findings belong to."""

    name: str

    def ok(self, message: str) -> CheckupFindingView:
        return self._made("ok", message)

    def warning(self, message: str, remedy: str) -> CheckupFindingView:
        return self._made("warning", message, remedy)

    def problem(self, message: str, remedy: str) -> CheckupFindingView:
        return self._made("problem", message, remedy)

    def skipped(self, message: str) -> CheckupFindingView:
        return self._made("skipped", message)

    def error(self, error: PenstockError) -> CheckupFindingView:
        """An error that an operator would see, with the command that helps."""
        command = command_of(error.remedy)
        hint = "" if error.remedy and error.hint == str(error.remedy) else error.hint
        remedy = f"{hint} ({command})" if hint and command else hint or command
        return self._made("problem", error.message, remedy)

    def _made(self, state: State, message: str, remedy: str = "") -> CheckupFindingView:
        return CheckupFindingView(area=self.name, state=state, message=message, remedy=remedy)


def size(count: float) -> str:
    """Bytes in words."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:,.1f} {unit}"
