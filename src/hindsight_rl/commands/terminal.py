"""What commands print: lines, wrapped at words in a terminal; and a live line while they work, plain lines in a log."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Self, TypeVar

from ..options import Settings, TrainingOptions
from ..report.verdict import by_reason, duration, format_value
from ..training.evaluate import Outcome
from ..training.events import EvaluationFinished, Event, JobFinished, OptionsChanged

if TYPE_CHECKING:  # rich is an extra that `check` does not need; the trainer imports torch
    from rich.console import Console

    from ..training.trainer import Trainer

INDENT = 4  # of the lines that go on with a wrapped line
Clock = Callable[[], float]
Item = TypeVar("Item")


def say(line: str, file: IO[str] | None = None) -> None:
    """Print a line to stdout or a file. A full disk, or a reader that went away, does not stop a run."""
    file = file or sys.stdout
    with contextlib.suppress(OSError):
        print(wrapped(line, shutil.get_terminal_size().columns) if file.isatty() else line, file=file, flush=True)


def say_command(words: str) -> None:
    """Print a command of `hindsight-rl` for the user to copy. It stays one line in a terminal too."""
    with contextlib.suppress(OSError):
        print(f"  hindsight-rl {words}", flush=True)


def wrapped(text: str, width: int) -> str:
    """Return text in lines of at most `width` characters. Lines break at spaces only: a longer word stays whole."""
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.splitlines():
        words = line.lstrip()
        wrapper.initial_indent = line.removesuffix(words)
        wrapper.subsequent_indent = wrapper.initial_indent + " " * INDENT
        lines.append(wrapper.fill(words))
    return "\n".join(lines)


def console_of(file: IO[str]) -> Console:
    """Return a console that writes escape codes only to a terminal.

    A notebook runs commands in a terminal of its own and asks for colours, but it shows a live line as many lines.
    """
    from rich.console import Console

    return Console(file=file, force_terminal=file.isatty() and "JPY_PARENT_PID" not in os.environ)


class Display:
    """How far a command is. A context manager: the live line is removed after an error too.

    total: steps, episodes or runs.
    console: of stderr for commands whose output is read by programs.
    seconds_between_lines: in a log.
    """

    def __init__(self, total: int, console: Console, clock: Clock = time.monotonic, seconds_between_lines: float = 5.0):
        self.console, self._clock, self._interval = console, clock, seconds_between_lines
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        text = TextColumn("{task.fields[text]}", table_column=Column())  # wraps at words
        self._live = Progress(BarColumn(bar_width=10), text, console=console, disable=not console.is_terminal)
        self._task = self._live.add_task("", total=total, text="starting")
        self._printed_at, self._total = clock(), total
        self.start_at(0)

    def show(self, done: int, text: str) -> None:
        """Show how much is done: at once in a terminal, every few seconds in a log."""
        if self.console.is_terminal:
            self._live.update(self._task, completed=done, text=text)
        elif self._clock() - self._printed_at > self._interval:
            self._printed_at = self._clock()
            self.print(text)

    def start_at(self, done: int) -> None:
        """Estimate the time left from now on. done: so much is done already."""
        self._start = self._clock(), done

    def time_left(self, done: int) -> str:
        """Return an estimate such as "about 4 min left", if the rest goes on as since the start; "" at start and end."""
        began, first = self._start
        if not first < done < self._total:
            return ""
        seconds = (self._clock() - began) / (done - first) * (self._total - done)
        return f"about {duration(max(1, round(seconds)))} left"

    def print(self, line: str) -> None:
        """Print a line above the live line."""
        if self.console.is_terminal:
            text = wrapped(line, self.console.width)
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            say(line, self.console.file)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._live.stop()


class TrainDisplay:
    """Shows the events of a training run on a display.

    printed: sentences about what was not found or is not used, which were printed before.
    """

    def __init__(self, display: Display, options: TrainingOptions, printed: Collection[str] = ()) -> None:
        self._display, self._options, self._is_learning = display, options, False
        self._evaluated = 0  # episodes of the evaluation under way
        self._training, self._evaluation = "", ""
        self._printed = printed

    def show(self, trainer: Trainer, event: Event) -> None:
        """Show an event."""
        self._evaluated = self._evaluated + 1 if isinstance(event, Outcome) else 0
        counts, means, total = trainer.counts, trainer.meter.means(), self._options.steps
        done = min(counts.env_steps, total)
        if counts.updates and not self._is_learning:  # the random steps before are faster
            self._is_learning = True
            self._display.start_at(done)
        if isinstance(event, JobFinished):
            self._show_changes(trainer, event)
        if isinstance(event, EvaluationFinished):
            self._evaluation = f"evaluation {event.evaluation.success_rate:.0%}"
            best = ", best so far" if event.is_best else ""
            self._display.print(f"evaluation at {event.snapshot.counts.env_steps:,} steps: {event.evaluation}{best}")
        if "train/success_rate" in means:
            self._training = f"training {means['train/success_rate']:.0%}"
        now = f"evaluating {self._evaluated}/{self._options.eval_episodes}" if self._evaluated else self._training
        parts = (f"{counts.env_steps:,}/{total:,} steps", self._evaluation, now, f"{counts.updates:,} updates")
        self._display.show(done, "  ".join(part for part in (*parts, self._time_left(done)) if part))

    def _show_changes(self, trainer: Trainer, event: JobFinished) -> None:
        """Print the options that changed, and what the search for structure did not find or use, if that is new."""
        for change in event.changes:
            for line in change_lines(change):
                self._display.print(line)
        not_used, not_found = trainer.settings.not_used, trainer.not_found
        for line in not_used_lines(each for each in not_used if each not in self._printed):
            self._display.print(line)
        for sentence in (each for each in not_found if each not in self._printed):
            self._display.print(f"  not found in {trainer.counts.env_steps:,} steps: {sentence}")
        self._printed = (*not_used, *not_found)

    def _time_left(self, done: int) -> str:
        """Return the estimate of the time left, with its conditions."""
        left = self._display.time_left(done) if self._is_learning else ""
        can_be_solved = self._options.eval_every and self._options.solved_evaluations
        return f"{left} at this speed{', if it is not solved before' if can_be_solved else ''}" if left else ""


def progress(items: Iterable[Item], total: int, unit: str, clock: Clock = time.monotonic) -> Iterator[Item]:
    """Yield the items, and show on stderr how many are done and the time left. unit: what they are, as "episodes"."""
    with Display(total, console_of(sys.stderr), clock) as display:
        for done, item in enumerate(items, 1):
            yield item
            display.show(done, f"{done}/{total} {unit}  {display.time_left(done)}".rstrip())


def chosen_lines(settings: Settings) -> Iterator[str]:
    """Yield the options that were chosen from the task. What stays off is left out."""
    options = settings.flat()
    chosen = [(name, why) for name, why in settings.reasons.items() if options.get(name, False) is not False]
    for text, reason in by_reason((f"{name} = {format_value(options[name])}", why) for name, why in chosen):
        yield f"  {text}  ({reason})"


def not_used_lines(sentences: Iterable[str]) -> Iterator[str]:
    """Yield what was found, but contradicts other options. sentences: `Settings.not_used`."""
    yield from (f"  not used: {sentence}" for sentence in sentences)


def change_lines(event: OptionsChanged) -> Iterator[str]:
    """Yield the options that changed, and why the agent was replaced if it was."""
    if event.changes:
        yield f"at {event.env_steps:,} steps options change:"
    changes = [
        (f"{each.option}: {format_value(each.before)} -> {format_value(each.value)}", each.reason) for each in event.changes
    ]
    for text, reason in by_reason(changes):
        yield f"  {text}  ({reason})"
    if event.new_agent:
        yield f"at {event.env_steps:,} steps a new agent takes over, with the stored episodes: {event.new_agent}"
