"""What is printed while training: a live line in a terminal, plain lines in a log."""

from __future__ import annotations

import contextlib
import copy
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from ..training.evaluate import Outcome
from ..training.events import Counts, EvaluationFinished, Event
from ..training.trainer import Trainer

BAR_WIDTH = 110  # columns of a terminal from which a bar is shown


def say(line: str) -> None:
    """Print a line. A full disk, or a reader that went away, does not stop a run."""
    with contextlib.suppress(OSError):
        print(line, flush=True)


class Display:
    """Shows how far a trainer is. A context manager: the live line is removed after an error too.

    steps: of the whole run.
    seconds_between_lines: in a log.
    """

    def __init__(self, steps: int, console: Console, seconds_between_lines: float = 5.0) -> None:
        self._console, self._steps, self._interval = console, steps, seconds_between_lines
        bar = [BarColumn(bar_width=20)] if console.width >= BAR_WIDTH else []
        text = TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True))
        self._live = Progress(text, TimeRemainingColumn(compact=True), *bar, console=console)
        self._task = self._live.add_task("training", total=steps, text="starting")
        self._printed_at = self._started = time.monotonic()
        self._evaluated = 0  # episodes of the evaluation under way
        self._first_step: int | None = None
        self._rates, self._success = "", ""
        self._before = Counts()

    def show(self, trainer: Trainer, event: Event) -> None:
        """Show an event, at once or with the next line."""
        self._evaluated = self._evaluated + 1 if isinstance(event, Outcome) else 0
        if self._first_step is None:
            self._first_step, self._before = trainer.counts.env_steps, copy.copy(trainer.counts)
            self._live.reset(self._task, completed=self._first_step, text="")
        text = self._text(trainer)
        if isinstance(event, EvaluationFinished):
            best = ", best so far" if event.is_best else ""
            self._print(f"evaluation at {trainer.counts.env_steps:,} steps: {event.evaluation}{best}")
        if self._console.is_terminal:
            self._live.update(self._task, completed=min(trainer.counts.env_steps, self._steps), text=text)
        elif not isinstance(event, Outcome) and time.monotonic() - self._printed_at > self._interval:
            self._printed_at = time.monotonic()
            self._print(f"{text}  left {self._time_left(trainer)}")

    def _print(self, line: str) -> None:
        if self._console.is_terminal:
            self._console.print(line, highlight=False)
        else:
            say(line)

    def _text(self, trainer: Trainer) -> str:
        counts, means = trainer.counts, trainer.meter.means()
        if counts.env_steps > self._before.env_steps:
            self._rates = _rates(self._before, counts)
            self._before = copy.copy(counts)
        if "train/success_rate" in means:
            self._success = f"  success {means['train/success_rate']:.0%}"
        best = trainer.evaluator.best
        best_text = f"  best {best['success_rate']:.0%}" if best else ""
        evaluating = f"  evaluating {self._evaluated}/{trainer.settings.training.eval_episodes}" if self._evaluated else ""
        return f"{counts.env_steps:,}/{self._steps:,} steps{self._success}{best_text}{self._rates}{evaluating}"

    def _time_left(self, trainer: Trainer) -> str:
        done = trainer.counts.env_steps - (self._first_step or 0)
        if not done:
            return "unknown"
        left = (time.monotonic() - self._started) / done * max(self._steps - trainer.counts.env_steps, 0)
        return f"{int(left // 60)}:{int(left % 60):02d}"

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()


def _rates(before: Counts, now: Counts) -> str:
    """Return steps per second of all time in between, and updates per second of the time spent on updates."""
    updating = now.update_seconds - before.update_seconds
    seconds = updating + now.collect_seconds - before.collect_seconds
    steps = f"  {(now.env_steps - before.env_steps) / max(seconds, 1e-9):,.0f} steps/s"
    updates = now.updates - before.updates
    return f"{steps}  {updates / max(updating, 1e-9):,.0f} updates/s" if updates else f"{steps}  no updates yet"
