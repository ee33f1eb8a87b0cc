"""What pytest loads by itself: it collects golden corpora, each page as a test of its own.

In:    files called penstock-golden.json where pytest looks for tests.
Out:   one test for each page, and the record diff where it fails.
Never: an import of Penstock's rooms before there is a corpus, the network, a word where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.app.golden.corpus import Corpus, GoldenCase
    from penstock.app.golden.golden import Check
    from penstock.app.views.golden import GoldenCaseView

# Spelled out: the module that knows it is not imported unless there is such a file.
MANIFEST = "penstock-golden.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("penstock")
    group.addoption(
        "--penstock-env",
        metavar="NAME",
        help="check golden corpora with the overlay penstock.NAME.yaml",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name != MANIFEST:
        return None
    found: GoldenFile = GoldenFile.from_parent(parent, path=file_path)
    return found


class Differs(Exception):
    """A page of which today's code makes something else than what was approved."""

    def __init__(self, view: GoldenCaseView) -> None:
        super().__init__(view.url)
        self.view = view


class GoldenFile(pytest.File):
    """A corpus: its project is opened once, when the first of its pages is checked."""

    _opened: Any = None
    _check: Check | None = None

    def collect(self) -> Iterable[pytest.Item]:
        from penstock.app.golden.corpus import read_corpus
        from penstock.errors import PenstockError

        try:
            self.corpus = read_corpus(self.path.parent)
        except PenstockError as error:
            raise self.CollectError(_said(error)) from None
        for case in self.corpus.cases:
            item: GoldenItem = GoldenItem.from_parent(self, name=_named(case, self.corpus))
            item.case, item.corpus = case, self
            yield item

    def check(self, case: GoldenCase) -> GoldenCaseView:
        if self._check is None:
            from penstock.app.golden.golden import opened_corpus
            from penstock.app.golden.offline import offline_settings
            from penstock.settings import find_project

            project = find_project(self.path.parent)
            settings = offline_settings(project, self.config.getoption("--penstock-env"))
            self._opened = opened_corpus(settings, self.path.parent)
            _, self._check = self._opened.__enter__()
        view, _ = self._check(case)
        return view

    def teardown(self) -> None:
        opened, self._opened, self._check = self._opened, None, None
        if opened is not None:
            opened.__exit__(None, None, None)


class GoldenItem(pytest.Item):
    """One page."""

    case: GoldenCase
    corpus: GoldenFile

    def runtest(self) -> None:
        view = self.corpus.check(self.case)
        if view.state != "same":
            raise Differs(view)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from penstock.errors import PenstockError

        if isinstance(excinfo.value, Differs):
            return "\n".join([*_report(excinfo.value.view), "", self._remedy()])
        if isinstance(excinfo.value, PenstockError):
            return _said(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"golden page {self.name}"

    def _remedy(self) -> str:
        source = self.corpus.corpus.source
        return f"If this is right: penstock golden check {source} --update"


def _report(view: GoldenCaseView) -> list[str]:
    from penstock.app.golden.report import case_lines

    return case_lines(view)


def _named(case: GoldenCase, corpus: Corpus) -> str:
    """Unique: two steps may have fetched one address."""
    names = [each.name for each in corpus.cases]
    return case.name if names.count(case.name) == 1 else f"{case.name} ({case.stage})"


def _said(error: Any) -> str:
    return f"{error.message}\n{error.hint}" if error.hint else str(error.message)
