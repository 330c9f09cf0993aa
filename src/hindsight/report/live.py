"""The page of a run under way: written now and then, and once more at its end. It never stops the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from .page import Form
from .run import read_run
from .write import RUN_PAGE, write_page

SECONDS_BETWEEN = 10.0  # pages, at least
SHARE_OF_TIME = 0.02  # that writing pages may take
REFRESH = 30  # seconds after which a browser reads the page of a run under way anew


class LiveReport:
    """Writes report.html into a run's folder while it goes on. clock: seconds; it must never go back.

    problem: why the last page could not be written, None where it was.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._due = clock() + SECONDS_BETWEEN
        self.problem: Exception | None = None

    def refresh(self) -> None:
        """Write the page if it is time; to be called as often as one likes."""
        began = self._clock()
        if began < self._due or self.problem:
            return
        self._write(Form(refresh=REFRESH))
        ended = self._clock()
        self._due = ended + max(SECONDS_BETWEEN, (ended - began) / SHARE_OF_TIME)

    def finish(self) -> Path | None:
        """Write the page of a run that has ended; None where that failed."""
        return self._write(Form())

    def _write(self, form: Form) -> Path | None:
        try:
            page = write_page([read_run(self._folder)], self._folder / RUN_PAGE, form)
        except Exception as problem:  # whatever it is: training is worth more than its picture
            self.problem = problem
            return None
        self.problem = None
        return page
