"""`hindsight-rl train`: the folder of a run, the loop around the trainer, signals, and what is printed."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from ..callbacks import Trackers
from ..errors import HindsightError
from ..her import HER
from ..options import STRUCTURE, Settings
from ..report.run import environment_name, read_run
from ..report.verdict import environment_steps, warnings_of
from ..report.write import LiveReport
from ..storage import usable_cores
from ..training.interruptions import STOPPING, finished, held_back, print_error
from ..training.run_folder import RunFolder
from .terminal import Display, TrainDisplay, chosen_lines, console_of, not_used_lines, say, say_command

MAX_NAME_LENGTH = 100  # of a folder's name


def folder_name(environment: str, env_options: Sequence[str] = ()) -> str:
    """Return an environment as the name of a folder: characters other than letters, digits and ._=- become _."""
    return re.sub(r"[^\w.=-]+", "_", "_".join([environment, *env_options]))[:MAX_NAME_LENGTH]


@dataclass
class Training:
    """A training run from the command line.

    model: trains, with its settings.
    environment: the id as the user wrote it.
    folder: of the run; None: runs/ENV/AGENT-seedN-K, the newest if `resume`, else a new one.
    resume: continue the run in the folder; begin one if there is none.
    trackers: "tensorboard", "wandb" or both.
    started: time.perf_counter() when the command started.
    command_defaults: options whose value is the default of the command line.
    name: of the run, for legends and tables; "" without one.
    """

    model: HER
    environment: str
    folder: Path | None
    resume: bool
    trackers: Sequence[str]
    started: float = field(default_factory=time.perf_counter)
    command_defaults: Collection[str] = ()
    name: str = ""

    def __post_init__(self) -> None:
        self.trainer = self.model.trainer  # made before the folder: wrong options leave no folder behind
        self.path = self.folder or self._default_folder()

    def run(self) -> int:
        """Train to the end or to a signal, and return the exit status."""
        checked = self.model.check_report
        warnings = checked.warnings if checked else ["it was skipped"]
        demonstrations = self.trainer.demonstrations
        task = self.model.settings, self.model.spec
        with RunFolder(self.path, *task, warnings, demonstrations, self.command_defaults, self.name) as folder:
            self._begin(folder)
            report = LiveReport(self.path)
            with held_back(STOPPING) as received:
                try:
                    with finished(folder, self.trainer, report=_end_process):
                        self._loop(folder, report, received)
                finally:
                    page = report.finish()
        if received:
            steps = self.trainer.counts.env_steps
            say(f"Stopped by {received[0].name} at {steps:,} steps. The same command with --resume continues.")
            return 128 + received[0]
        self._conclude()
        say(f"report: {page}" if page else f"There is no report: {report.problem}")
        return 0

    def _begin(self, folder: RunFolder) -> None:
        continues = self.resume and folder.holds_a_run
        if not self.resume:
            folder.begin()
        self._play_once()  # before the counts are those of a checkpoint, which contain it
        if self.resume:
            folder.resume(self.trainer)
        if self.resume and not continues:
            say(f"There is no run to resume in {self.path}. A new one begins.")
        self._announce(continues)
        if continues and self.trainer.is_solved:
            say("The run is already solved. To train on, add --solved-evaluations 0, and --steps N for more steps.")
        for notice in folder.notices:
            say(notice)

    def _play_once(self) -> None:
        """Play an evaluation episode if there was no check: a task that does not report success fails now, not later."""
        if self.model.settings.training.eval_every and not self.model.check_report:
            self.trainer.counts.check_steps += self.model.evaluate(1).outcomes[0].steps

    def _loop(self, folder: RunFolder, report: LiveReport, received: Sequence[signal.Signals]) -> None:
        settings, trainer = self.model.settings, self.trainer
        with (
            contextlib.closing(Trackers(self.trackers, self.path, settings.flat(), trainer.counts.env_steps)) as tracking,
            Display(settings.training.steps, console_of(sys.stdout)) as live,
        ):
            folder.listeners.append(tracking.log)
            printed = (*trainer.settings.not_used, *trainer.not_found)
            display = TrainDisplay(live, settings.training, printed)
            trainer.counts.start_seconds += time.perf_counter() - self.started
            for event in trainer.run(settings.training.steps):
                folder.listen(trainer, event)
                display.show(trainer, event)
                report.refresh()
                if received:
                    return

    def _default_folder(self) -> Path:
        """Return runs/ENV/AGENT-seedN-K."""
        settings = self.model.settings
        base = Path("runs") / folder_name(self.environment, settings.rollout.env_options)
        stem = f"{settings.agent}-seed{settings.training.seed}"
        numbered = [(int(n), path) for path in base.glob(f"{stem}-*") if (n := path.name[len(stem) + 1 :]).isdigit()]
        begun = [number for number, path in numbered if (path / "settings.json").exists()]
        if self.resume and begun:
            return base / f"{stem}-{max(begun)}"
        base.mkdir(parents=True, exist_ok=True)
        number = max((number for number, _ in numbered), default=0)
        while True:
            number += 1
            with contextlib.suppress(FileExistsError):  # another process took the number meanwhile
                (base / f"{stem}-{number}").mkdir()
                return base / f"{stem}-{number}"

    def _announce(self, continues: bool) -> None:
        settings = self.model.settings
        name = environment_name(self.model.spec.env_id, settings.rollout.env_options)
        say(
            f"{'resuming' if continues else 'training'} {name} with {settings.agent}, recipe {settings.recipe!r} "
            f"({_structure_text(settings, self.trainer.search is not None)}), seed {settings.training.seed}, in {self.path}"
        )
        report = self.model.check_report
        for finding in (*report.of("warning"), *report.of("not seen")) if report else ():
            say(f"  {finding.level}: {finding.name}: {finding.sentence}")
        if not report and settings.rollout.reset_mode == "reuse":
            say("  one environment is reset for all episodes, without a check. The same bytes are not promised")
        if self.trainer.demonstrations:
            facts = self.trainer.demonstrations.facts
            say(f"  demonstrations: {facts['name']}, {facts['successes']} of {facts['episodes']} episodes are successful")
        by = ", by the check" if report else ""
        say(f"  {self.trainer.counts.check_steps:,} environment steps were played before training{by}")
        for line in (*chosen_lines(settings), *not_used_lines(settings.not_used)):
            say(line)
        workers, cores = settings.rollout.workers, usable_cores()
        if workers != "auto" and workers >= cores > 1:
            say(f"{workers} workers and the learner share {cores} cores. --workers {cores - 1} is as fast, or faster.")

    def _conclude(self) -> None:
        counts, training = self.trainer.counts, self.model.settings.training
        done = f"stopped after {environment_steps(counts.env_steps, counts.check_steps)}"
        if self.trainer.is_solved:
            first = self.trainer.history[-training.solved_evaluations]["env_steps"]
            solved, confirmed = environment_steps(first, counts.check_steps), self.trainer.evaluator.evaluated_at
            done = f"solved at {solved}, confirmed at {confirmed:,} of training"
        if not counts.updates:
            done += f" without an update, since {self._why_no_update()}"
        say(
            f"{done}; {counts.updates:,} updates; {counts.start_seconds:.1f} s of starting, {counts.collect_seconds:.1f} s "
            f"of collecting, {counts.update_seconds:.1f} s of updating, {counts.evaluate_seconds:.1f} s of evaluating"
        )
        with contextlib.suppress(HindsightError):  # the report says what is wrong with the files
            for warning in warnings_of(read_run(self.path)):
                say(f"warning: {warning}")
        words = shlex.quote(str(self.path)) + (" --trust-module" if ":" in self.environment else "")
        say(f"run: {self.path}")
        say_command(f"play {words}")
        say_command(f"evaluate {words}")

    def _why_no_update(self) -> str:
        random_steps, search = self.model.settings.training.random_steps, self.trainer.search
        if search is not None and search.is_warm_up and self.trainer.counts.env_steps > random_steps:
            return "the run was still looking for the structure of the task (--structure none does not)"
        return f"random_steps is {random_steps:,}"


def _end_process(problem: str) -> NoReturn:
    """Print why the process cannot go on, and end it at once: its main thread never returns to Python."""
    print_error(problem)
    os._exit(1)


def _structure_text(settings: Settings, searches: bool) -> str:
    """Return where the structure of the task comes from, with what is declared where the rest is inferred.

    searches: whether the run looks for structure. The text then says whether any was found so far.
    """
    if settings.training.structure != "inferred":
        return settings.variant
    declared, flat = sorted(settings.declared), settings.flat()
    text = f"{', '.join(declared)} declared, the rest inferred" if declared else "inferred"
    is_empty = not any(flat.get(name) for name in STRUCTURE if name not in declared)
    return f"{text}: nothing found yet" if searches and is_empty else text
