import io
import re
from dataclasses import replace
from types import SimpleNamespace

from rich.console import Console

from hindsight.commands.terminal import Display, say
from hindsight.training.evaluate import Evaluation, Outcome
from hindsight.training.events import Counts, EvaluationFinished, JobFinished
from hindsight.training.metrics import Meter

EVALUATION = Evaluation(tuple(Outcome(i, i, (0.0,), (0.0,), i < 9, -1.0, 0.0, 1) for i in range(10)))


def run(display):
    """1,000 of 2,000 steps in 4 s, 3 of them for 3,000 updates; then an evaluation."""
    trainer = SimpleNamespace(
        counts=Counts(env_steps=10),
        meter=Meter(),
        evaluator=SimpleNamespace(best=None),
        settings=SimpleNamespace(training=SimpleNamespace(eval_episodes=10)),
    )
    with display:
        display.show(trainer, JobFinished([]))
        trainer.counts = replace(trainer.counts, env_steps=1010, updates=3000, collect_seconds=1.0, update_seconds=3.0)
        trainer.meter.add("train/success_rate", 0.5)
        display.show(trainer, JobFinished([]))
        trainer.evaluator.best = {"success_rate": 0.9}
        display.show(trainer, EvaluationFinished(EVALUATION, is_best=True, snapshot=None))


def test_a_log_file_gets_plain_lines(capsys):
    run(Display(2000, Console(file=io.StringIO()), seconds_between_lines=-1.0))
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"1,010/2,000 steps  success 50%  250 steps/s  1,000 updates/s  left \d+:\d\d", lines[1])
    assert lines[2].startswith("evaluation at 1,010 steps: success 90.0% of 10 episodes")
    assert lines[2].endswith(", best so far")
    assert not any("\x1b" in line for line in lines)


def shown(width=100, **variables):
    """Return what a terminal receives."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, _environ={"TERM": "xterm-256color"} | variables)
    run(Display(2000, console))
    return file.getvalue()


def test_a_terminal_shows_a_line_that_fits_it():
    for width in (80, 120):
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown(width))
        last = plain.replace("\r", "\n").strip().splitlines()[-1]
        assert len(last) <= width
        for part in ("1,010/2,000 steps", "success 50%", "best 90%", "250 steps/s", "1,000 updates/s"):
            assert part in last, (width, last)
        assert re.search(r"\d\d:\d\d|-:--", last)


def test_no_color_is_respected():
    colour = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|38|9[0-7])[;m]")
    assert colour.search(shown())
    assert not colour.search(shown(NO_COLOR="1"))


def test_a_closed_reader_does_not_stop_a_run(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    say("a line")
