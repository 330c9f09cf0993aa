"""A training run as the command line makes it: its folder, the loop that everything listens to, what it says."""

from __future__ import annotations

import contextlib
import itertools
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CollectError

if TYPE_CHECKING:
    from .her import HER
    from .recipes import Recipe

MOST_LETTERS = 100  # of a folder's name


def for_this_task(recipe: Recipe, environment: str, env_options: Sequence[str]) -> tuple[Recipe, str]:
    """The recipe with what it chooses by the task, and its agent; the environment is made to look at only where needed."""
    if recipe.discrete_agent is None and not recipe.from_spec:
        return recipe, recipe.agent
    from .envs.goal_env import make_goal_env, read_spec
    from .options import RolloutOptions, coerce
    from .recipes.fit import fit

    making = RolloutOptions(env_options=coerce("env_options", env_options, tuple[str, ...]))
    with contextlib.closing(make_goal_env(environment, env_options=making.env_arguments)) as env:
        spec = read_spec(env)
    return fit(recipe, spec), recipe.agent_for(is_discrete=spec.action.n_values is not None)


def find_modules_here(environment: str | None) -> None:
    """A module that is named with an environment may lie in the current folder, as with `python -m`."""
    if environment and ":" in environment and "" not in sys.path:
        sys.path.insert(0, "")


def place_of(environment: str, env_options: Sequence[str] = ()) -> str:
    """An environment as the name of a folder: whatever is neither letter, digit nor one of ._=- becomes a _."""
    return re.sub(r"[^\w.=-]+", "_", "_".join([environment, *env_options]))[:MOST_LETTERS]


def folder_of(model: HER, environment: str, resume: bool) -> Path:
    """runs/ENV/AGENT-seedN-K: the newest where a run is to go on, else a new one."""
    base = Path("runs") / place_of(environment, model.settings.rollout.env_options)
    stem = f"{model.settings.agent}-seed{model.settings.training.seed}"
    numbered = [(int(n), p) for p in base.glob(f"{stem}-*") if (n := p.name[len(stem) + 1 :]).isdigit()]
    begun = [number for number, path in numbered if (path / "settings.json").exists()]
    if resume and begun:
        return base / f"{stem}-{max(begun)}"
    base.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(max((number for number, _ in numbered), default=0) + 1):
        with contextlib.suppress(FileExistsError):  # another process took the number meanwhile
            (base / f"{stem}-{number}").mkdir()
            return base / f"{stem}-{number}"
    raise AssertionError("numbers do not end")


def train(model: HER, path: Path, environment: str, resume: bool, trackers: Sequence[str]) -> int:
    """Train in the folder `path`, with a live line, until the end or a signal; the exit status."""
    from rich.console import Console

    from .report.live import LiveReport
    from .terminal import Display
    from .trackers import Trackers
    from .training.run_folder import RunFolder

    trainer, settings = model.trainer, model.settings
    with RunFolder(path, settings, model.spec) as folder:
        goes_on = resume and folder.holds_a_run
        if goes_on:
            folder.resume(trainer)
        else:
            folder.begin()
        _announce(model, path, goes_on)
        report = LiveReport(path)
        if settings.training.eval_every:
            model.evaluate(1)  # an environment that does not tell success says so now, not after hours
        console = Console(soft_wrap=True)
        with (
            stop_signals() as stop,
            Trackers(trackers, path, settings.flat(), trainer.counts.env_steps) as tracking,
            Display(settings.training.steps, console) as display,
        ):
            folder.listeners.append(tracking.log)
            try:
                for event in trainer.run(settings.training.steps):
                    folder.listen(trainer, event)
                    display.show(trainer, event)
                    report.refresh()
                    if stop:
                        break
            except CollectError:  # the trainer stands where the last job ended
                folder.finish(trainer)
                report.finish()
                raise
            folder.finish(trainer)
            page = report.finish()
    if stop:
        print(f"stopped by {stop[0].name} at {trainer.counts.env_steps:,} steps; the same command with --resume goes on")
        return 128 + stop[0]
    _conclude(model, path, environment)
    print(f"what it learnt is drawn in {page}" if page else f"there is no report of it: {report.problem}")
    return 0


def _announce(model: HER, path: Path, goes_on: bool) -> None:
    from .report.run import environment_name

    settings = model.settings
    name = environment_name(model.spec.env_id, settings.rollout.env_options)
    print(
        f"{'resuming' if goes_on else 'training'} {name} with {settings.agent}, recipe {settings.recipe!r} "
        f"({settings.variant}), seed {settings.training.seed}, in {path}"
    )
    if settings.reasons:
        print(f"the recipe leaves open, and the spec of {name} decides: {'; '.join(settings.reasons)}")
    workers, lag = settings.rollout.workers, settings.rollout.policy_lag
    if workers > lag + 1:
        print(
            f"a lag of {lag} keeps at most {lag + 1} of {workers} workers busy while training: {workers - lag - 1} help "
            f"with evaluations only. --policy-lag {workers - 1} would use all, with older weights"
        )
    elif workers and not lag:
        print("a lag of 0 leaves the workers idle while the learner updates: --policy-lag 1 would let both go on at once")


def _conclude(model: HER, path: Path, environment: str) -> None:
    trainer = model.trainer
    counts = trainer.counts
    done = f"stopped after {counts.env_steps:,} steps"
    if trainer.is_solved:
        first = trainer.history[-model.settings.training.solved_evaluations]
        done = f"solved at {int(first['env_steps']):,} steps, held until {counts.env_steps:,}"
    print(
        f"{done}; {counts.updates:,} updates: {counts.collect_seconds:.1f} s of collecting and "
        f"{counts.update_seconds:.1f} s of updating"
    )
    words = shlex.quote(str(path)) + (f" --env {shlex.quote(environment)}" if ":" in environment else "")
    print(f"the run is in {path}\n  hindsight play {words}\n  hindsight evaluate {words}")


@contextlib.contextmanager
def stop_signals() -> Iterator[list[signal.Signals]]:
    """Collects Ctrl-C and SIGTERM; the second one of a kind ends the process at once."""
    received: list[signal.Signals] = []

    def remember(number: int, frame: object) -> None:
        received.append(signal.Signals(number))
        signal.signal(number, signal.SIG_DFL)

    before = {s: signal.signal(s, remember) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
