"""From run folders to a page on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import MissingExtraError, RunFolderError
from .comparison import comparison_page, text
from .page import SCRIPT_NAME, Form, run_page
from .run import Run, find_runs, read_run

RUN_PAGE, COMPARISON_PAGE = "report.html", "comparison.html"


def write_report(folders: Sequence[Path], target: Path | None = None, standalone: bool = False) -> Path:
    """Write the page of one run, or the one that compares several; the path written.

    target: the page's file; unless given, report.html in the run's folder, or comparison.html in the folder that all runs
    share. A folder of runs stands for all of them. standalone: put Plotly's script inside the page, in place of a file
    beside it. Raises RunFolderError, FileError, and MissingExtraError without plotly.
    """
    runs = read_runs(folders)
    form = Form(_plotly()) if standalone else Form()
    return write_page(runs, target or _place_of(runs, folders), form)


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs in these folders, each a run or a folder of runs; at least one."""
    if not folders:
        raise RunFolderError("no run is named: name one folder that `hindsight train` has written, or several to compare")
    return [read_run(path) for folder in folders for path in find_runs(folder)]


def write_comparison(folders: Sequence[Path], target: Path | None = None) -> tuple[str, Path]:
    """What the seeds of each kind say together: as text, and as a page, also of a single run."""
    runs = read_runs(folders)
    target = target or _common(folders) / COMPARISON_PAGE
    _write(comparison_page(runs, Form(), target.parent), target, Form())
    return text(runs), target


def write_page(runs: Sequence[Run], target: Path, form: Form) -> Path:
    """Write a page, whole or not at all, and Plotly's script beside it where the page needs it there."""
    page = run_page(runs[0], form) if len(runs) == 1 else comparison_page(runs, form, target.parent)
    _write(page, target, form)
    return target


def _write(page: str, target: Path, form: Form) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    script = target.parent / SCRIPT_NAME
    if form.plotly is None and not script.exists():
        replace_text(script, _plotly())
    replace_text(target, page)


def _place_of(runs: Sequence[Run], folders: Sequence[Path]) -> Path:
    return runs[0].path / RUN_PAGE if len(runs) == 1 else _common(folders) / COMPARISON_PAGE


def _common(folders: Sequence[Path]) -> Path:
    """The folder that all share; a single one as it was named."""
    return folders[0] if len(folders) == 1 else Path(os.path.commonpath([folder.resolve() for folder in folders]))


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingExtraError('a report needs plotly: pip install "hindsight-rl[report]"') from None
    return str(get_plotlyjs())


def replace_text(place: Path, text: str) -> None:
    """Write aside, then rename: a browser never sees half a page."""
    aside = place.with_name(f"{place.name}.tmp-{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)
