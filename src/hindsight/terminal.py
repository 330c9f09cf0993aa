"""What a person sees while training: a live line at a terminal, plain lines in a log."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from .training.evaluate import Outcome
from .training.trainer import Counts, EvaluationFinished, Event, Trainer

WIDE = 110  # columns of a terminal that has room for a bar


class Display:
    """Follows a trainer; a context manager, so that the live line is taken away whatever happens."""

    def __init__(self, steps: int, console: Console, seconds_between_lines: float = 5.0) -> None:
        self._console, self._steps, self._patience = console, steps, seconds_between_lines
        bar = [BarColumn(bar_width=20)] if console.width >= WIDE else []  # the time left matters more
        text = TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True))
        self._live = Progress(text, TimeRemainingColumn(compact=True), *bar, console=console)
        self._task = self._live.add_task("training", total=steps, text="starting")
        self._spoke_at = self._started = time.monotonic()
        self._played, self._is_silent = 0, False
        self._first_step: int | None = None
        self._rates, self._success = "", ""
        self._before = Counts()

    def show(self, trainer: Trainer, event: Event) -> None:
        """Tell of an event, now or with the next line."""
        self._played = self._played + 1 if isinstance(event, Outcome) else 0
        if self._first_step is None:
            self._first_step, self._before = trainer.counts.env_steps, trainer.counts
            self._live.reset(self._task, completed=self._first_step, text="")
        text = self._text(trainer)
        if isinstance(event, EvaluationFinished):
            best = "  best so far" if event.is_best else ""
            self._say(f"evaluation at {trainer.counts.env_steps:,} steps: {event.evaluation}{best}")
        if self._console.is_terminal:
            self._live.update(self._task, completed=min(trainer.counts.env_steps, self._steps), text=text)
        elif not isinstance(event, Outcome) and time.monotonic() - self._spoke_at > self._patience:
            self._spoke_at = time.monotonic()
            self._say(f"{text}  left {self._time_left(trainer)}")

    def _say(self, line: str) -> None:
        """A line for good. Where nobody listens any more, training goes on in silence."""
        if self._console.is_terminal:
            self._console.print(line, highlight=False)
        elif not self._is_silent:
            try:
                print(line, flush=True)
            except OSError:
                self._is_silent = True

    def _text(self, trainer: Trainer) -> str:
        counts, means = trainer.counts, trainer.meter.means()
        if counts.env_steps > self._before.env_steps:
            self._rates = _rates(self._before, counts)
            self._before = counts
        if "train/success_rate" in means:
            self._success = f"  success {means['train/success_rate']:.0%}"
        best = f"  best {trainer.best['success_rate']:.0%}" if trainer.best else ""
        playing = f"  evaluating {self._played}/{trainer.settings.training.eval_episodes}" if self._played else ""
        steps = f"{counts.env_steps:,}/{self._steps:,} steps"
        return f"{steps}{self._success}{best}{self._rates}{playing}"

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
    """Steps per second of all the time between, and updates per second of the time spent on them."""
    updating = now.update_seconds - before.update_seconds
    seconds = updating + now.collect_seconds - before.collect_seconds
    steps = f"  {(now.env_steps - before.env_steps) / max(seconds, 1e-9):,.0f} steps/s"
    updates = now.updates - before.updates
    return f"{steps}  {updates / max(updating, 1e-9):,.0f} updates/s" if updates else f"{steps}  no updates yet"
