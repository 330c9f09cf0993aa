"""`hindsight-rl benchmark`: every task of a suite with every seed, each run a child process with a folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from argparse import Namespace
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..envs.goal_env import make_goal_env, read_spec
from ..errors import GoalEnvError, HindsightError, MissingExtraError, OptionError, RunFolderError
from ..options import Settings, named_values
from ..recipes import Recipe, choose_recipe
from ..recipes.files import Entry, Suite, load_suite
from ..records import GoalSpec
from ..report.run import environment_name, find_runs, read_run
from ..report.verdict import duration, environment_steps, solved_at_step
from ..report.write import COMPARISON_PAGE, pictures_folder, write_comparison, write_results
from ..storage import read_json
from ..training.interruptions import STOPPING, held_back
from ..training.resolve import resolve_settings
from ..training.run_folder import FREE_ON_RESUME, read_ending
from ..training.saved_model import refuse_other_settings
from .arguments import option_words
from .tasks import find_modules_here
from .terminal import progress, say
from .train import folder_name

MAX_SEEDS = 1_000
POLL_SECONDS = 0.1  # between two looks at the child processes


@dataclass(frozen=True)
class Task:
    """An entry of a suite with its options and settings. The seed is that of no run."""

    entry: Entry
    options: Mapping[str, Any]
    settings: Settings

    def folder(self, base: Path, seed: int) -> Path:
        """Return the folder of the run with this seed."""
        name, env_options = self.entry.name, self.settings.rollout.env_options
        folder = folder_name(self.entry.environment, () if name else env_options)
        return base / (f"{folder}-{folder_name(name)}" if name else folder) / f"{self.settings.agent}-seed{seed}"


@dataclass(frozen=True)
class PlannedRun:
    """One run: a task with a seed, in a folder."""

    task: Task
    seed: int
    folder: Path

    @property
    def log(self) -> Path:
        """The file of its output."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def is_finished(self) -> bool:
        """Whether it was solved, or has all its steps."""
        ending = read_ending(self.folder)
        return ending is not None and (ending.why == "solved" or ending.env_steps >= self.task.settings.training.steps)

    @property
    def command(self) -> list[str]:
        """The command line of the child process. It resumes from a checkpoint if there is one."""
        entry = self.task.entry
        words = [sys.executable, "-P", "-m", "hindsight_rl", "train", entry.environment, "--seed", str(self.seed)]
        words += ["--folder", str(self.folder), "--resume", "--agent", self.task.settings.agent]
        words += [f"--name={entry.name}"] if entry.name else []
        words += ["--recipe", entry.recipe] if entry.recipe else []
        return words + [word for name, value in self.task.options.items() for word in option_words(name, value)]

    def __str__(self) -> str:
        entry, settings = self.task.entry, self.task.settings
        name = environment_name(entry.environment, settings.rollout.env_options)
        return ", ".join(part for part in (name, entry.name, settings.agent, f"seed {self.seed}") if part)


@dataclass
class Benchmark:
    """A suite with its seeds, in a folder. overrides: options of every run, above those of its entry."""

    suite: Suite
    seeds: Sequence[int]
    folder: Path
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> list[PlannedRun]:
        """Return every run, all tasks with the first seed first.

        Raises OptionError for options that are not valid, RunFolderError if the folder holds other runs.
        """
        tasks = [_task(self.suite, entry, self.overrides) for entry in self.suite.entries]
        planned = [PlannedRun(task, seed, task.folder(self.folder, seed)) for seed in self.seeds for task in tasks]
        if len({run.folder for run in planned}) < len(planned):
            raise OptionError(f"Suite {self.suite.name!r} has a task twice with the same agent. Give each a `name`.")
        for path in _runs_in(self.folder):
            self._refuse_another_run(path, tasks)
        return planned

    def run(self, jobs: int) -> int:
        """Run what is not finished yet, `jobs` at a time, print the results of all, and return the exit status."""
        planned = self.plan()
        waiting = [run for run in planned if not run.is_finished]
        n_finished = len(planned) - len(waiting)
        print(f"{self.suite.name}: {len(planned)} runs, {n_finished} finished, in {self.folder}", flush=True)
        failures = []
        with held_back(STOPPING) as received:
            ended = progress(_run_all(waiting, jobs, received), len(waiting), "runs")
            for count, (run, status) in enumerate(ended, 1):
                text = _outcome(run, status)
                failures += [f"{run}: {text}"] * bool(status)
                if not received or not status:
                    say(f"[{count}/{len(waiting)}] {run}: {text}")
        if received:
            print(f"Stopped by {received[0].name}. The same command continues.")
            return 128 + received[0]
        self._print_results(failures)
        return 1 if failures else 0

    def _print_results(self, failures: Sequence[str]) -> None:
        """Write and print the results of every finished run in the folder, of earlier seeds too."""
        self.folder.mkdir(parents=True, exist_ok=True)
        endings = {path: read_ending(path) for path in _runs_in(self.folder)}
        runs = [read_run(path) for path, ending in endings.items() if ending and ending.why != "stopped"]
        write_results(self.suite.name, runs, self.folder, failures)
        pages = []
        if runs:
            text, page = write_comparison([run.path for run in runs], self.folder / COMPARISON_PAGE)
            pages = [f"curves: {page}", f"pictures: {pictures_folder(page)}"]
            print(text)
        for line in failures:
            say(f"failed: {line}")
        print(f"runs: {self.folder / 'results.csv'}", f"table: {self.folder / 'results.md'}", *pages, sep="\n")

    def _refuse_another_run(self, path: Path, tasks: Sequence[Task]) -> None:
        """Raise RunFolderError if a run in the folder is of no task, OptionError if it has other settings."""
        found = read_json(path / "settings.json")
        seed = found["options"]["seed"]
        task = next((task for task in tasks if task.folder(self.folder, seed) == path), None)
        if task is None:
            raise RunFolderError(f"{path} is not a run of suite {self.suite.name!r}. Use another --folder.")
        wanted = json.loads(json.dumps(task.settings.to_json()))
        wanted["options"]["seed"] = seed
        played = found.get("reasons", {}).keys() - task.settings.reasons.keys()  # options that the run found by playing
        try:
            refuse_other_settings(found, wanted, FREE_ON_RESUME | played)
        except OptionError as problem:
            raise OptionError(f"{path}: {problem} Or use another --folder.") from None


def benchmark(arguments: Namespace) -> int:
    """Train on every task of a suite with several seeds, and return the exit status."""
    suite = load_suite(arguments.suite)
    folder = arguments.folder or Path("runs") / "benchmark" / suite.name
    return Benchmark(suite, parse_seeds(arguments.seeds), folder, named_values("set", arguments.set)).run(arguments.jobs)


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of "0-4", "0,2,5" or "3". Raises OptionError for anything else."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise OptionError(f"`--seeds` must be whole numbers, as in 0-4, 0,2,5 or 3, got {text!r}.")
        low, high = int(match[1]), int(match[2] or match[1])
        if not low <= high < low + MAX_SEEDS:
            raise OptionError(f"A range of `--seeds` must increase and hold at most {MAX_SEEDS:,} seeds, got {part!r}.")
        seeds += range(low, high + 1)
    return list(dict.fromkeys(seeds))


def _runs_in(folder: Path) -> list[Path]:
    try:
        return find_runs(folder)
    except RunFolderError:
        return []


def _task(suite: Suite, entry: Entry, overrides: Mapping[str, Any]) -> Task:
    options = {**entry.options, **overrides}
    source = f"suite {suite.name!r}, {', '.join(part for part in (entry.environment, entry.name) if part)}"
    try:
        if "seed" in options:
            raise OptionError("`seed` is not an option of an entry. Use --seeds.")
        find_modules_here(entry.environment)
        recipe = choose_recipe(entry.recipe, entry.environment)
        return Task(entry, options, resolve_settings(recipe, _spec(recipe, entry, options), entry.agent, options))
    except HindsightError as problem:
        raise type(problem)(f"{source}: {problem}") from None


def _spec(recipe: Recipe, entry: Entry, options: Mapping[str, Any]) -> GoalSpec | None:
    """Return the spec of a task if its settings depend on it; None if it cannot run here, which its process reports."""
    if not recipe.automatic and recipe.discrete_agent is None:
        return None
    try:
        arguments, keys = recipe.environment_arguments(options), options.get("observation_keys", ())
        with closing(make_goal_env(entry.environment, None, arguments, keys, options.get("reward", "step"))) as env:
            return read_spec(env)
    except (MissingExtraError, GoalEnvError):
        return None


def _run_all(runs: Sequence[PlannedRun], jobs: int, stop: Sequence[object]) -> Iterator[tuple[PlannedRun, int]]:
    """Yield each run with the exit status of its process, as they end. Once `stop` holds something, all are ended."""
    waiting = deque(runs)
    running: list[tuple[PlannedRun, subprocess.Popen[bytes]]] = []
    try:
        while (waiting or running) and not stop:
            while waiting and len(running) < jobs:
                run = waiting.popleft()
                running.append((run, _start(run)))
            for run, process in [pair for pair in running if pair[1].poll() is not None]:
                running.remove((run, process))
                yield run, process.returncode
            time.sleep(POLL_SECONDS if running else 0)
    finally:
        for _, process in running:
            process.terminate()
    for run, process in running:
        yield run, process.wait()


def _start(run: PlannedRun) -> subprocess.Popen[bytes]:
    """Start a run in a session of its own: Ctrl-C is handled here. It has one thread unless the environment says more."""
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    variables = {"OMP_NUM_THREADS": "1"} | dict(os.environ)
    with run.log.open("ab") as log:
        log.write(f"{' '.join(run.command)}\n".encode())
        log.flush()
        return subprocess.Popen(
            run.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=variables
        )


def _outcome(run: PlannedRun, status: int) -> str:
    """Return the result of a run in words. status: the exit status of its process."""
    if status:
        lines = run.log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if line.startswith("hindsight-rl: ")] or [line for line in lines if line.strip()]
        return f"{errors[-1] if errors else f'exit status {status}'} ({run.log})"
    found = read_run(run.folder)
    seconds, at = duration(found.last("seconds")), solved_at_step(found)
    if at is not None:
        return f"solved at {environment_steps(at, found.check_steps)}, after {duration(found.at(at, 'seconds'))}"
    return f"not solved in {environment_steps(found.last('env_steps'), found.check_steps)} and {seconds}"
