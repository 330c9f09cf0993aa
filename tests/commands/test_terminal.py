import io
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from hindsight.commands.terminal import Display, TrainDisplay, progress, say
from hindsight.options import TrainingOptions
from hindsight.training.counts import Counts
from hindsight.training.evaluate import Evaluation, Outcome
from hindsight.training.events import EvaluationFinished, JobFinished
from hindsight.training.metrics import Meter

OUTCOMES = tuple(Outcome(i, i, (0.0,), (0.0,), i < 9, -1.0, 0.0, 1) for i in range(10))
OPTIONS = TrainingOptions(steps=2000, eval_every=500, eval_episodes=10)


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self):
        return self.now


def finished(trainer, is_best=True):
    return EvaluationFinished(Evaluation(OUTCOMES), is_best, SimpleNamespace(counts=trainer.counts))


def run(display, clock):
    """Show 1,000 of 2,000 steps, 4 s of learning from step 10 on, and an evaluation that takes 2 s."""
    trainer = SimpleNamespace(counts=Counts(env_steps=10, updates=1), meter=Meter())
    shown = TrainDisplay(display, OPTIONS)
    with display:
        shown.show(trainer, JobFinished([]))
        clock.now = 4.0
        trainer.counts = replace(trainer.counts, env_steps=1010, updates=3000)
        trainer.meter.add("train/success_rate", 0.5)
        shown.show(trainer, JobFinished([]))
        clock.now = 6.0
        shown.show(trainer, OUTCOMES[0])
        shown.show(trainer, finished(trainer))
        shown.show(trainer, JobFinished([]))


def test_a_log_gets_plain_lines(capsys):
    clock = Clock()
    run(Display(2000, Console(), clock, seconds_between_lines=-1.0), clock)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "10/2,000 steps  1 updates",
        "1,010/2,000 steps  training 50%  at most 0:04 left  3,000 updates",
        "1,010/2,000 steps  evaluating 1/10  at most 0:06 left  3,000 updates",
        "evaluation at 1,010 steps: success 90.0% of 10 episodes (95 % interval 59.6% to 98.2%), return -1.00 +- 0.00, "
        "final distance 0.0000, best so far",
        "1,010/2,000 steps  evaluation 90%  training 50%  at most 0:06 left  3,000 updates",
        "1,010/2,000 steps  evaluation 90%  training 50%  at most 0:06 left  3,000 updates",
    ]


def test_a_log_gets_a_line_every_few_seconds(capsys):
    clock = Clock()
    display = Display(10, Console(), clock, seconds_between_lines=5.0)
    for second in range(12):
        clock.now = second
        display.show(second, f"second {second}")
    assert capsys.readouterr().out.splitlines() == ["second 6"]


def shown(width=100, **variables):
    """Return what a terminal receives."""
    file, clock = io.StringIO(), Clock()
    console = Console(file=file, force_terminal=True, width=width, _environ={"TERM": "xterm-256color"} | variables)
    run(Display(2000, console, clock), clock)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_a_line_that_fits_it(width):
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown(width))
    lines = plain.replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= width
    last = [line for line in lines if line.strip()][-1]
    for part in ("1,010/2,000 steps", "evaluation 90%", "training 50%", "0:06 left"):
        assert part in last, last
    assert ("3,000 updates" in last) == (width == 120)


def test_no_color_is_respected():
    colour = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|38|9[0-7])[;m]")
    assert colour.search(shown())
    assert not colour.search(shown(NO_COLOR="1"))


def test_time_left_in_words():
    clock = Clock()
    display = Display(2, Console(), clock)
    assert display.time_left(0) == ""
    for clock.now, words in ((0.4, "0:00 left"), (75.0, "1:15 left"), (3_723.0, "1:02:03 left")):
        assert display.time_left(1) == words


def test_progress_passes_items_on_and_shows_the_time_left(capsys):
    clock = Clock()
    for number in progress("abcd", 4, "letters", clock):
        assert number in "abcd"
        clock.now += 6.0
    assert capsys.readouterr().err.splitlines() == [
        "1/4 letters  0:18 left",
        "2/4 letters  0:12 left",
        "3/4 letters  0:06 left",
        "4/4 letters  0:00 left",
    ]


def test_a_closed_reader_does_not_stop_a_run(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    say("a line")
    Display(3, Console()).print("another line")
