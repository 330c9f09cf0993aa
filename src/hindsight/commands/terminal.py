"""What a command prints while it works: a live line in a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from ..options import TrainingOptions
from ..training.counts import Counts
from ..training.evaluate import Outcome
from ..training.events import EvaluationFinished, Event

if TYPE_CHECKING:  # it imports torch
    from ..training.trainer import Trainer

WIDE = 110  # columns of a terminal from which the bar is long, and rates are shown
Clock = Callable[[], float]
T = TypeVar("T")


def say(line: str, file: IO[str] | None = None) -> None:
    """Print a line to stdout or a file. A full disk, or a reader that went away, does not stop a run."""
    try:
        print(line, file=file, flush=True)
    except OSError:
        return


class Display:
    """How far a command is. A context manager: the live line is removed after an error too.

    total: steps, episodes or runs.
    console: stderr for commands whose output is read by programs.
    seconds_between_lines: in a log.
    """

    def __init__(self, total: int, console: Console, clock: Clock = time.monotonic, seconds_between_lines: float = 5.0):
        self.console, self._clock, self._interval = console, clock, seconds_between_lines
        text = TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True))
        self._live = Progress(
            BarColumn(bar_width=20 if self.is_wide else 10), text, console=console, disable=not console.is_terminal
        )
        self._task = self._live.add_task("", total=total, text="starting")
        self._printed_at = clock()

    @property
    def is_wide(self) -> bool:
        """Whether there is room for rates."""
        return self.console.width >= WIDE or not self.console.is_terminal

    def show(self, done: int, text: str) -> None:
        """Show how much is done: at once in a terminal, every few seconds in a log."""
        if self.console.is_terminal:
            self._live.update(self._task, completed=done, text=text)
        elif self._clock() - self._printed_at > self._interval:
            self._printed_at = self._clock()
            self.print(text)

    def print(self, line: str) -> None:
        """Print a line above the live line."""
        if self.console.is_terminal:
            self.console.print(line, highlight=False, markup=False)
        else:
            say(line, self.console.file)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._live.stop()


class TrainDisplay:
    """Shows the events of a training run on a display."""

    def __init__(self, display: Display, options: TrainingOptions, clock: Clock = time.monotonic) -> None:
        self._display, self._options, self._clock = display, options, clock
        self._began: tuple[float, int] | None = None  # when learning began: time and environment steps
        self._evaluated = 0  # episodes of the evaluation under way
        self._training, self._evaluation = "", ""

    def show(self, trainer: Trainer, event: Event) -> None:
        """Show an event."""
        self._evaluated = self._evaluated + 1 if isinstance(event, Outcome) else 0
        counts, means, total = trainer.counts, trainer.meter.means(), self._options.steps
        if isinstance(event, EvaluationFinished):
            self._evaluation = f"evaluation {event.evaluation.success_rate:.0%}"
            best = ", best so far" if event.is_best else ""
            self._display.print(f"evaluation at {event.snapshot.counts.env_steps:,} steps: {event.evaluation}{best}")
        if "train/success_rate" in means:
            self._training = f"training {means['train/success_rate']:.0%}"
        now = f"evaluating {self._evaluated}/{self._options.eval_episodes}" if self._evaluated else self._training
        rates = f"{counts.updates:,} updates" if self._display.is_wide else ""
        left = duration_left(self._seconds_left(counts))
        parts = (f"{counts.env_steps:,}/{total:,} steps", self._evaluation, now, rates, left)
        self._display.show(min(counts.env_steps, total), "  ".join(part for part in parts if part))

    def _seconds_left(self, counts: Counts) -> float | None:
        """Return the time left, evaluations included, if the rest goes on as since the first update; None before."""
        if self._began is None and counts.updates:
            self._began = self._clock(), counts.env_steps
        if self._began is None or counts.env_steps == self._began[1]:
            return None
        per_step = (self._clock() - self._began[0]) / (counts.env_steps - self._began[1])
        return per_step * max(self._options.steps - counts.env_steps, 0)


def duration_left(seconds: float | None) -> str:
    """Return "1:02:03 left", "2:03 left", or "" for None."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d} left" if hours else f"{minutes}:{rest:02d} left"


def progress(items: Iterable[T], total: int, unit: str, clock: Clock = time.monotonic) -> Iterator[T]:
    """Yield the items, and show on stderr how many are done and the time left. unit: what they are, as "episodes"."""
    started = clock()
    with Display(total, Console(stderr=True), clock) as display:
        for done, item in enumerate(items, 1):
            yield item
            left = duration_left((clock() - started) / done * (total - done))
            display.show(done, f"{done}/{total} {unit}  {left}")
