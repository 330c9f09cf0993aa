"""Write pages and tables of runs to disk, whole or not at all."""

from __future__ import annotations

import base64
import math
import mimetypes
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import RunFolderError, needs_extra
from ..records import Finding
from ..storage import VIDEO_SUFFIXES, save_bytes, write_csv
from .comparison import comparison_page, comparison_text
from .figures import finding_plots
from .page import Page, findings_page, link, run_page
from .run import Run, find_runs, read_run, readable_path
from .verdict import best_evaluation, solved_at_step

RUN_PAGE, COMPARISON_PAGE, SCRIPT_NAME = "report.html", "comparison.html", "plotly.min.js"
LARGEST_VIDEO = 64 << 20  # bytes of one that is put into a page; a larger one is linked
MIN_INTERVAL = 10.0  # seconds between two pages of a run that is training
MAX_TIME_FRACTION = 0.02  # of the time of a run that its pages may take
REFRESH = 30  # seconds after which a browser loads the page of a run that is training again


def write_report(folders: Sequence[Path], target: Path | None = None, standalone: bool = False) -> Path:
    """Write the page of one run, or the page that compares several, and return its path.

    Each curve of the page is also written as SVG and PNG, into the folder that `pictures_folder` names.
    folders: run folders, or folders that contain run folders.
    target: path of the page. The default is report.html in the folder of the run, or comparison.html in the common folder.
    standalone: whether the page contains Plotly's script and the video. If not, they are files in the folder of the page.
    Raises RunFolderError without a run, FileError for a malformed file, and MissingExtraError without plotly.
    """
    paths = _run_folders(folders)
    if len(paths) > 1:
        return write_comparison(folders, target, standalone)[1]
    page = run_page(read_run(paths[0]), _video_url(paths[0], standalone))
    return _with_pictures(page, _write_page(page, target or paths[0] / RUN_PAGE, standalone))


def write_comparison(folders: Sequence[Path], target: Path | None = None, standalone: bool = False) -> tuple[str, Path]:
    """Write the page that compares runs, or shows a single one, and return it as text, and the path of the page.

    Arguments and exceptions are those of `write_report`.
    """
    runs = [read_run(path) for path in _run_folders(folders)]
    target = target or _common_folder(folders) / COMPARISON_PAGE
    page = comparison_page(runs, target.parent)
    return comparison_text(runs), _with_pictures(page, _write_page(page, target, standalone))


def write_findings(findings: Sequence[Finding], environment: str, path: Path) -> None:
    """Draw what the steps of a task show as one page or picture. path: ends in .html, .svg or .png."""
    plots = finding_plots(findings)
    if path.suffix == ".html":
        _write_page(findings_page(environment, findings, plots), path, standalone=True)
        return
    from .pictures import pictures_of_rows

    save_bytes(path, pictures_of_rows(plots, environment)[path.suffix[1:]])


def pictures_folder(page: Path) -> Path:
    """Return the folder of the pictures of a page, beside it."""
    return page.with_name(f"{page.stem}-pictures")


def _with_pictures(page: Page, path: Path) -> Path:
    """Write the pictures of a page, and return its path."""
    from .pictures import write_pictures  # it imports matplotlib, which the page of a run that trains does not need

    for section in page.sections:
        write_pictures(section.plots, pictures_folder(path))
    return path


def _run_folders(folders: Sequence[Path]) -> list[Path]:
    """Return the folders of runs in these folders. Raises RunFolderError if there is none."""
    if not folders:
        raise RunFolderError("Expected at least one run folder, got none. Name a folder that `hindsight-rl train` wrote.")
    return [path for folder in folders for path in find_runs(folder)]


def write_results(name: str, runs: Sequence[Run], folder: Path, failures: Sequence[str]) -> None:
    """Write results.csv (one line per run) and results.md (the comparison) of a benchmark.

    name: of the suite.
    folder: contains the runs and receives the files.
    failures: one line for each run that failed.
    """
    lines = [result_of(run) | {"folder": readable_path(run.path.relative_to(folder))} for run in runs]
    write_csv(folder / "results.csv", list(lines[0]) if lines else [], lines)
    parts = [f"# {name}"]
    if runs:
        parts.append(f"```text\n{comparison_text(runs)}\n```")
    if failures:
        parts.append("These runs failed:\n\n" + "\n".join(f"- {line}" for line in failures))
    _write_text(folder / "results.md", "\n\n".join(parts) + "\n")


def result_of(run: Run) -> dict[str, Any]:
    """Return a run as a line of results.csv (columns: docs/files.md). Unknown values are ""."""
    settings, machine = run.settings, run.settings.machine.facts()
    solved, best = solved_at_step(run), best_evaluation(run)
    steps = math.nan if solved is None else solved
    return {
        "environment": run.environment,
        "name": settings.name,
        "variant": settings.variant,
        "agent": settings.agent,
        "recipe": settings.recipe,
        "seed": run.options.seed,
        "solved": solved is not None,
        "steps_to_solve": _short_number(steps),
        "updates_to_solve": _short_number(run.at(steps, "updates")),
        "seconds_to_solve": _short_number(run.at(steps, "seconds")),
        "final_success": _short_number(run.last("test/success_rate")),
        "best_success": _short_number(math.nan if best is None else best.success_rate),
        "eval_episodes": _short_number(run.last("test/episodes")),
        "env_steps": _short_number(run.last("env_steps")),
        "check_steps": _short_number(run.check_steps),
        "updates": _short_number(run.last("updates")),
        "seconds": _short_number(run.last("seconds")),
        "version": machine.get("hindsight-rl", ""),
        **{name: machine.get(name, "") for name in ("commit", "python", "torch", "numpy", "processor", "cores")},
        "time": settings.begun,
        "folder": readable_path(run.path),
    }


class LiveReport:
    """Writes report.html of a run that is training. A failure never stops the run.

    clock: function that returns seconds and never goes back.
    problem: why the last page could not be written, None if it was.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._due = clock() + MIN_INTERVAL
        self.problem: Exception | None = None

    def refresh(self) -> None:
        """Write the page if it is due. After a failure no further page is written before `finish`."""
        began = self._clock()
        if began < self._due or self.problem:
            return
        self._write(REFRESH)
        ended = self._clock()
        self._due = ended + max(MIN_INTERVAL, (ended - began) / MAX_TIME_FRACTION)

    def finish(self) -> Path | None:
        """Write the page of the run, which has ended, and return its path; None if that fails."""
        return self._write(refresh=0)

    def _write(self, refresh: int) -> Path | None:
        self.problem = None
        try:
            page = run_page(read_run(self._folder), _video_url(self._folder, standalone=False))
            return _write_page(page, self._folder / RUN_PAGE, False, refresh)
        except Exception as problem:  # no failure of the report may end the training
            self.problem = problem
            return None


def _write_page(page: Page, target: Path, standalone: bool = False, refresh: int = 0) -> Path:
    """Write a page with Plotly's script inside, or beside it."""
    script = target.parent / SCRIPT_NAME
    if not standalone and not script.exists():
        _write_text(script, _plotly_script())
    _write_text(target, page.to_html(_plotly_script() if standalone else "", refresh))
    return target


def _video_url(folder: Path, standalone: bool) -> str:
    """Return the URL of the video of a run, "" without one. The URL for a standalone page contains a small video."""
    videos = [video for suffix in VIDEO_SUFFIXES for video in sorted(folder.glob(f"*{suffix}"))]
    if not videos or not standalone or videos[0].stat().st_size > LARGEST_VIDEO:
        return link(videos[0].name) if videos else ""
    content, video = base64.b64encode(videos[0].read_bytes()).decode(), videos[0]
    return f"data:{mimetypes.guess_type(video.name)[0] or 'image/webp'};base64,{content}"


def _write_text(path: Path, text: str) -> None:
    save_bytes(path, text.encode("utf-8", "replace"))


def _common_folder(folders: Sequence[Path]) -> Path:
    """Return the folder that contains all folders. A single folder is returned as given."""
    return folders[0] if len(folders) == 1 else Path(os.path.commonpath([folder.resolve() for folder in folders]))


def _plotly_script() -> str:
    with needs_extra("report", "A report needs plotly"):
        from plotly.offline import get_plotlyjs
    return str(get_plotlyjs())


def _short_number(value: float) -> str:
    """Return a number with at most ten digits, "" for NaN."""
    return "" if math.isnan(value) else f"{value:.10g}"
