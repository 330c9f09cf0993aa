import io
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from hindsight_rl.commands.terminal import Display, TrainDisplay, console_of, progress
from hindsight_rl.options import TrainingOptions
from hindsight_rl.training.evaluate import Evaluation, Outcome
from hindsight_rl.training.events import EvaluationFinished, JobFinished
from hindsight_rl.training.run_state import Counts, Meter

OUTCOMES = tuple(Outcome(i, i, (0.0,), (0.0,), i < 9, -1.0, 0.0, 1) for i in range(10))
CONDITION = "left at this speed, if it is not solved before"
OPTIONS = TrainingOptions(steps=2000, eval_every=500, eval_episodes=10)


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self):
        return self.now


def finished(trainer, is_best=True):
    return EvaluationFinished(Evaluation(OUTCOMES), is_best, SimpleNamespace(counts=trainer.counts))


def trainer_after(env_steps):
    counts, settings = Counts(env_steps=env_steps, updates=1), SimpleNamespace(not_used=())
    return SimpleNamespace(counts=counts, meter=Meter(), settings=settings, not_found=())


def run(display, clock):
    """Show 1,000 of 2,000 steps, 4 s of learning from step 10 on, and an evaluation that takes 2 s."""
    trainer = trainer_after(10)
    shown = TrainDisplay(display, OPTIONS)
    with display:
        shown.show(trainer, JobFinished())
        clock.now = 4.0
        trainer.counts = replace(trainer.counts, env_steps=1010, updates=3000)
        trainer.meter.add("train/success_rate", 0.5)
        shown.show(trainer, JobFinished())
        clock.now = 6.0
        shown.show(trainer, OUTCOMES[0])
        shown.show(trainer, finished(trainer))
        shown.show(trainer, JobFinished())


def test_a_log_gets_plain_lines(capsys):
    clock = Clock()
    run(Display(2000, Console(), clock, seconds_between_lines=-1.0), clock)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "10/2,000 steps  1 updates",
        f"1,010/2,000 steps  training 50%  3,000 updates  about 4 s {CONDITION}",
        f"1,010/2,000 steps  evaluating 1/10  3,000 updates  about 6 s {CONDITION}",
        "evaluation at 1,010 steps: success 90.0% of 10 episodes (95 % interval 59.6% to 98.2%), return -1.00 +- 0.00, "
        "final distance 0.0000, best so far",
        f"1,010/2,000 steps  evaluation 90%  training 50%  3,000 updates  about 6 s {CONDITION}",
        f"1,010/2,000 steps  evaluation 90%  training 50%  3,000 updates  about 6 s {CONDITION}",
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


def plain(text):
    """Return the lines of a text without escape codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_whole_words_in_lines_that_fit_it(width):
    lines = plain(shown(width))
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    assert f"evaluation 90% training 50% 3,000 updates about 6 s {CONDITION}" in words
    assert "95 % interval 59.6% to 98.2%), return -1.00 +- 0.00, final distance 0.0000, best so far" in words


def test_the_time_left_has_no_condition_if_the_run_cannot_be_solved(capsys):
    clock = Clock()
    shown = TrainDisplay(Display(2000, Console(), clock, -1.0), OPTIONS.replace(solved_evaluations=0))
    for clock.now, steps in ((0.0, 10), (5.0, 1005)):
        shown.show(trainer_after(steps), JobFinished())
    assert capsys.readouterr().out.splitlines()[-1] == "1,005/2,000 steps  1 updates  about 5 s left at this speed"


def test_no_color_is_respected():
    colour = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|38|9[0-7])[;m]")
    assert colour.search(shown())
    assert not colour.search(shown(NO_COLOR="1"))


def test_time_left_in_words():
    clock = Clock()
    display = Display(2, Console(), clock)
    assert display.time_left(0) == ""
    for clock.now, words in ((0.4, "1 s"), (75.0, "75 s"), (228.0, "4 min"), (9_000.0, "2.5 h")):
        assert display.time_left(1) == f"about {words} left"
    assert display.time_left(2) == ""


def test_progress_passes_items_on_and_shows_the_time_left(capsys):
    clock = Clock()
    for number in progress("abcd", 4, "letters", clock):
        assert number in "abcd"
        clock.now += 6.0
    assert capsys.readouterr().err.splitlines() == [
        "1/4 letters  about 18 s left",
        "2/4 letters  about 12 s left",
        "3/4 letters  about 6 s left",
        "4/4 letters",
    ]


def test_a_pipe_gets_no_escape_codes_although_a_notebook_asks_for_colours(monkeypatch, capsys):
    """Jupyter sets FORCE_COLOR for its commands."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    for number in progress("abcd", 4, "letters", clock := Clock()):
        clock.now += 6.0
        print(number)
    out, error = capsys.readouterr()
    assert (out.split(), "\x1b" in error) == (list("abcd"), False)


def test_a_notebook_gets_lines_although_it_has_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert console_of(terminal).is_terminal
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert not console_of(terminal).is_terminal


def test_a_closed_reader_does_not_stop_a_run(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    Display(3, Console()).print("another line")
