"""`hindsight benchmark`: the tasks of a suite, each with every seed, each run a child process in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import GoalEnvError, HindsightError, MissingExtraError, OptionError, RunFolderError
from .options import Settings, option_types
from .recipes import choose_recipe
from .recipes.suite import Entry, Suite
from .report.comparison import text
from .report.results import write_results
from .report.run import Run, environment_name, find_runs, read_run
from .report.verdict import duration, solved_at
from .runs import find_modules_here, for_this_task, place_of, stop_signals
from .training.checkpoint import refuse_other_settings
from .training.run_folder import FREE_ON_RESUME, read_ending
from .training.settings import resolve_settings

MOST_SEEDS = 1_000
PATIENCE = 0.1  # seconds between two looks at the children


@dataclass(frozen=True)
class Task:
    """An entry of a suite, resolved. settings: without a seed. problem: why it cannot be run here, where that is so."""

    entry: Entry
    options: Mapping[str, Any]
    settings: Settings | None = None
    problem: str = ""

    @property
    def env_options(self) -> Sequence[str]:
        """What the environment is made with."""
        return self.settings.rollout.env_options if self.settings else tuple(map(str, self.options.get("env_options", ())))


@dataclass(frozen=True)
class Planned:
    """One run: a task with a seed, in a folder."""

    task: Task
    seed: int
    folder: Path

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def is_finished(self) -> bool:
        """Whether it was solved, or has all its steps."""
        wanted, ending = self.task.settings, read_ending(self.folder)
        if wanted is None or ending is None:
            return False
        return ending.why == "solved" or ending.env_steps >= wanted.training.steps

    def refuse_other_settings(self, found: Mapping[str, Any]) -> None:
        """Raise OptionError where it was begun with other settings; found: those in its folder, as JSON."""
        if self.task.settings is None:
            return
        settings = json.loads(json.dumps(self.task.settings.to_json()))
        settings["options"]["seed"] = self.seed
        try:
            refuse_other_settings(found, settings, FREE_ON_RESUME)
        except OptionError as problem:
            raise OptionError(f"{self.folder}: {problem}, in another --folder") from None

    @property
    def command(self) -> list[str]:
        """What a child process runs: `hindsight train ...`, where there is one already on from its checkpoint."""
        entry = self.task.entry
        words = [sys.executable, "-P", "-m", __package__, "train", entry.environment, "--seed", str(self.seed)]
        words += ["--folder", str(self.folder), "--resume"]
        if self.task.settings is None:
            return words
        words += ["--agent", self.task.settings.agent] + (["--recipe", entry.recipe] if entry.recipe else [])
        return words + list(_words(self.task.options, option_types(self.task.settings.agent)))

    def __str__(self) -> str:
        entry, settings = self.task.entry, self.task.settings
        name = environment_name(entry.environment, self.task.env_options)
        agent = settings.agent if settings else entry.agent
        return ", ".join(part for part in (name, entry.name, agent, f"seed {self.seed}") if part)


@dataclass
class Benchmark:
    """A suite with its seeds, in a folder. overrides: options of every run, on top of those of its entry."""

    suite: Suite
    seeds: Sequence[int]
    folder: Path
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> list[Planned]:
        """Every run, seed after seed, so that each task has one soon. Raises OptionError for what cannot be, before any."""
        tasks = [_task(self.suite, entry, self.overrides) for entry in self.suite.entries]
        planned = [Planned(task, seed, self._place(task, seed)) for seed in self.seeds for task in tasks]
        if len({run.folder for run in planned}) < len(planned):
            raise OptionError(
                f"suite {self.suite.name!r} has a task twice with the same agent: give each a `name` of its own"
            )
        return planned

    def run(self, jobs: int) -> int:
        """Run what is not finished yet, `jobs` at a time, and tell what all of it came to; the exit status."""
        planned = self.plan()
        self._refuse_strangers(planned)
        waiting = [run for run in planned if not run.is_finished]
        told = f"{len(planned)} runs, of which {len(planned) - len(waiting)} are finished already"
        print(f"{self.suite.name}: {told}, in {self.folder}", flush=True)
        failures = []
        with stop_signals() as stop:
            for count, (run, status) in enumerate(_run_all(waiting, jobs, stop), 1):
                said, failed = _outcome(run, status)
                failures += [f"{run}: {said}"] * failed
                if not stop or not failed:
                    print(f"[{count}/{len(waiting)}] {run}: {said}", flush=True)
        if stop:
            print(f"stopped by {stop[0].name}; the same command goes on")
            return 128 + stop[0]
        self._tell(failures)
        return 1 if failures else 0

    def _tell(self, failures: Sequence[str]) -> None:
        """Of every finished run in the folder, whatever seeds were asked for now."""
        self.folder.mkdir(parents=True, exist_ok=True)
        endings = {path: read_ending(path) for path in _runs_in(self.folder)}
        runs = [read_run(path) for path, ending in endings.items() if ending and ending.why != "stopped"]
        write_results(self.suite.name, runs, self.folder, failures)
        if runs:
            print(text(runs))
        for line in failures:
            print(f"failed: {line}")
        print(f"every run is a line of {self.folder / 'results.csv'}, the table is in {self.folder / 'results.md'}")
        print(f"  hindsight compare {self.folder}")

    def _place(self, task: Task, seed: int) -> Path:
        entry = task.entry
        place = place_of(entry.environment, () if entry.name else task.env_options)
        agent = task.settings.agent if task.settings else entry.agent or "agent"
        return self.folder / (f"{place}-{place_of(entry.name)}" if entry.name else place) / f"{agent}-seed{seed}"

    def _refuse_strangers(self, planned: Sequence[Planned]) -> None:
        """Raise RunFolderError for a run of something else in the folder, OptionError for one with other settings."""
        for path in _runs_in(self.folder):
            run = read_run(path)
            begun = next((Planned(each.task, run.seed, path) for each in planned if self._is_of(each.task, run)), None)
            if begun is None:
                raise RunFolderError(
                    f"{self.folder} holds {path.relative_to(self.folder)}, which is no run of suite {self.suite.name!r}: "
                    f"name another --folder"
                )
            begun.refuse_other_settings(run.settings)

    def _is_of(self, task: Task, run: Run) -> bool:
        """Whether a run lies where one of this task does; its agent is not known where the task cannot be run here."""
        place = self._place(task, run.seed)
        return run.path == place if task.settings else run.path.parent == place.parent


def parse_seeds(written: str) -> list[int]:
    """The seeds of "0-4", "0,2,5" or "3". Raises OptionError for anything else."""
    seeds: list[int] = []
    for part in written.split(","):
        first, _, last = (end.strip() for end in part.partition("-"))
        if not first.isdecimal() or not (last or first).isdecimal() or ("-" in part and not last):
            raise OptionError(f"seeds is {written!r}, but whole numbers are needed, as in 0-4, 0,2,5 or 3")
        low, high = int(first), int(last or first)
        if not low <= high < low + MOST_SEEDS:
            raise OptionError(f"seeds is {written!r}, but {low}-{high} must rise, and hold at most {MOST_SEEDS:,} seeds")
        seeds += range(low, high + 1)
    return list(dict.fromkeys(seeds))


def _runs_in(folder: Path) -> list[Path]:
    try:
        return find_runs(folder)
    except RunFolderError:
        return []


def _task(suite: Suite, entry: Entry, overrides: Mapping[str, Any]) -> Task:
    options = {**entry.options, **overrides}
    place = f"suite {suite.name!r}, {', '.join(part for part in (entry.environment, entry.name) if part)}"
    try:
        if "seed" in options:
            raise OptionError("the option seed is not an entry's: seeds are given by --seeds")
        recipe = choose_recipe(entry.recipe, entry.environment)
        find_modules_here(entry.environment)
        recipe, agent = for_this_task(recipe, entry.environment, options.get("env_options", recipe.env_options))
        return Task(entry, options, resolve_settings(recipe, entry.agent or agent, options))
    except (MissingExtraError, GoalEnvError) as problem:
        return Task(entry, options, problem=str(problem))
    except HindsightError as problem:
        raise type(problem)(f"{place}: {problem}") from None


def _words(options: Mapping[str, Any], types: Mapping[str, Any]) -> Iterator[str]:
    """Options as the command line has them."""
    for name, value in options.items():
        word = name.replace("_", "-")
        if types[name] is bool:
            yield f"--{word}" if value else f"--no-{word}"
        else:
            yield f"--{word}"
            yield from map(str, value if isinstance(value, list | tuple) else [value])


def _run_all(runs: Sequence[Planned], jobs: int, stop: Sequence[object]) -> Iterator[tuple[Planned, int]]:
    """Each run with the exit status of its process, as they end; none is begun, and all are asked to end, once `stop`."""
    waiting, are_asked = deque(runs), False
    running: dict[Path, tuple[Planned, subprocess.Popen[bytes]]] = {}
    try:
        while running or (waiting and not stop):
            while waiting and len(running) < jobs and not stop:
                run = waiting.popleft()
                if run.task.problem:
                    yield run, 1
                else:
                    running[run.folder] = (run, _start(run))
            if stop and not are_asked:
                are_asked = True
                _end(process for _, process in running.values())
            for run, process in list(running.values()):
                if (status := process.poll()) is not None:
                    del running[run.folder]
                    yield run, status
            time.sleep(PATIENCE if running else 0)
    finally:
        _end(process for _, process in running.values())


def _end(processes: Iterator[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()


def _start(run: Planned) -> subprocess.Popen[bytes]:
    """A child in a session of its own, for Ctrl-C is ours to answer; with one thread, unless the environment says more."""
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    variables = {"OMP_NUM_THREADS": "1"} | dict(os.environ)
    with run.log.open("ab") as log:
        log.write(f"{' '.join(run.command)}\n".encode())
        log.flush()
        return subprocess.Popen(
            run.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=variables,
        )


def _outcome(run: Planned, status: int) -> tuple[str, bool]:
    """What became of a run, and whether it failed."""
    if run.task.problem:
        return run.task.problem, True
    if status:
        lines = run.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"{next((line for line in reversed(lines) if line.strip()), f'exit status {status}')} ({run.log})", True
    found = read_run(run.folder)
    seconds, at = duration(found.last("seconds")), solved_at(found)
    if at is not None:
        return f"solved at {at:,.0f} steps, after {duration(found.at(at, 'seconds'))}", False
    return f"not solved in {found.last('env_steps'):,.0f} steps and {seconds}", False
