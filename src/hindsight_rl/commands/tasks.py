"""Commands about a task: `check`, `new` and `infer`; and where commands find the module of an environment."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ..envs.check import check_goal_env
from ..envs.goal_env import EnvSource
from ..errors import FileError, OptionError, RunFolderError
from ..options import STRUCTURE, Choice
from ..recipes import choose_recipe
from ..recipes.files import require_toml, write_recipe
from ..records import Finding
from ..report.verdict import by_reason, format_value
from .terminal import say, say_command

TEMPLATES = resources.files(__package__) / "templates"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
FINDING_TITLES = {
    "part": "parts of the goal",
    "group": "columns of the observation",
    "column": "columns that may be hidden: error of networks that predict the next displacements (1: nothing is explained)",
    "contact": "contact",
    "symmetry": "symmetries: the same error in transformed steps",
}
EXPLAINED_BY = {"hidden_observation": "column", "symmetries": "symmetry", "subgoals": "contact"}  # option: kind of finding
PLOT_SUFFIXES = (".html", ".svg", ".png")
NOT_FLAT = (
    "parts, contact, hidden columns and symmetries, which need flat arrays of floats: observations, goals and actions. "
    "`train` learns with the options above, and without these"
)


def find_modules_here(name: str | None) -> None:
    """Let Python find the module of a name such as "dock:Dock-v0" in the current folder, as `python -m` does."""
    if name and ":" in name and "" not in sys.path:
        sys.path.insert(0, "")


def check(arguments: Namespace) -> int:
    """Check an environment, print the report, and return the exit status."""
    find_modules_here(arguments.env)
    recipe = choose_recipe(arguments.recipe, arguments.env)
    result = check_goal_env(
        arguments.env,
        recipe.environment_arguments(vars(arguments)),
        recipe.options.get("symmetries", ()),
        info_keys=arguments.info_keys,
        max_episode_steps=arguments.max_episode_steps or None,
        reward=arguments.reward or recipe.options.get("reward", "step"),
    )
    say(str(result))
    return int(not result.ok)


def new(arguments: Namespace) -> None:
    """Write a task and its test, and print how to go on."""
    name, folder = arguments.name, arguments.folder
    module, test = new_task(name, folder)
    environment = f"{name}:{_class_name(name)}-v0"
    print(f"{module}: a goal environment with comments\n{test}: its test")
    if folder != Path():
        print(f"  cd {folder}")
    print(f"  python -m pytest {test.name}\n  hindsight-rl check {environment}\n  hindsight-rl train {environment}")


def new_task(name: str, folder: Path) -> list[Path]:
    """Write NAME.py, a goal environment with comments, and test_NAME.py, and return their paths.

    name: in small letters, digits and _, such as "my_task". The environment's id is then MyTask-v0.
    Raises OptionError for another name, and for one that Python or a package has, and RunFolderError if a file exists.
    """
    if not _NAME.fullmatch(name):
        raise OptionError(f"The name must have small letters, digits and _, as in my_task, got {name!r}.")
    paths = [folder / f"{name}.py", folder / f"test_{name}.py"]
    for path in paths:
        if path.exists():
            raise RunFolderError(f"{path} already exists. Choose another name, or remove it.")
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or importlib.util.find_spec(name):
        raise OptionError(f"{name!r} is a word or module of Python, or an installed package. Choose another name.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, template in zip(paths, ("task.py.txt", "test_task.py.txt"), strict=True):
        text = (TEMPLATES / template).read_text(encoding="utf-8")
        path.write_text(text.replace("my_task", name).replace("MyTask", _class_name(name)), encoding="utf-8")
    return paths


def _class_name(name: str) -> str:
    """Return MyTask for my_task."""
    return "".join(part.capitalize() for part in name.split("_"))


@dataclass(frozen=True)
class Inferred:
    """What the first steps of a run show. choices: the options that `train` uses because of it."""

    env_steps: int
    check_steps: int
    findings: Sequence[Finding]
    choices: Sequence[Choice]
    not_found: Sequence[str]
    not_used: Sequence[str]


def infer(arguments: Namespace) -> None:
    """Find the structure of a task in its first steps, print it with its figures, draw it, and write it as a recipe."""
    env, output, plot = arguments.env, arguments.output, arguments.plot
    if output is not None:
        require_toml(output)  # now, not after the steps
    if plot is not None and plot.suffix not in PLOT_SUFFIXES:
        raise FileError(f"The name of a plot must end in {', '.join(PLOT_SUFFIXES)}, got {plot}.")
    find_modules_here(env)
    found = infer_task(env, arguments.steps, arguments.seed)
    _print(found)
    if plot is not None:
        from ..report.write import write_findings

        write_findings(found.findings, env, plot)
        say(f"plot: {plot}")
    if output is not None:
        save_choices(env, found.choices, output)
        say(f"recipe: {output}")
        say_command(f"train {env} --recipe {output}")


def infer_task(environment: EnvSource, random_steps: int, seed: int) -> Inferred:
    """Play the first steps of a run, until it learns, and return what they show.

    random_steps: at least; 0: as many as `train` plays, which then finds the same.
    Raises what making and playing the environment raises.
    """
    from ..her import HER
    from ..training.resolve import latest

    options: dict[str, Any] = {"random_steps": random_steps} if random_steps else {}
    options["updates_per_step"] = 1e-6  # they would take time, and change nothing that is found
    with HER(environment, recipe="default", structure="inferred", seed=seed, **options) as model:
        trainer, search = model.trainer, model.trainer.search
        while search is not None and search.is_warm_up:
            trainer.learn_from_next_job()
        settings, found = trainer.settings, latest(search.state.found.choices() if search else ())
        values = settings.flat()
        used = {
            name: reason
            for name, reason in settings.reasons.items()
            if values[name] not in (None, (), [])
            and (name in (*STRUCTURE, "observation_keys") or (name in found and found[name].reason == reason))
        }
        return Inferred(
            trainer.counts.env_steps,
            trainer.counts.check_steps,
            trainer.findings,
            [Choice(name, found[name].value if name in found else values[name], reason) for name, reason in used.items()],
            trainer.not_found if search else (NOT_FLAT,),
            settings.not_used,
        )


def _print(found: Inferred) -> None:
    played = found.env_steps + found.check_steps
    say(f"played {played:,} environment steps, {found.check_steps:,} of them by the check")
    for kind, title in FINDING_TITLES.items():
        _print_part(title, [str(finding) for finding in found.findings if finding.kind == kind])
    kinds = {finding.kind for finding in found.findings}
    texts = []
    for choice in found.choices:
        kind = EXPLAINED_BY.get(choice.option, "")
        reason = f"see {FINDING_TITLES[kind].split(':')[0]}, above" if kind in kinds else choice.reason
        texts.append((f"{choice.option} = {format_value(choice.value)}", reason))
    _print_part("options that follow", [f"{text}\n      {reason}" for text, reason in by_reason(texts)])
    printed = {str(finding) for finding in found.findings}
    left_out = [f"not found: {sentence}" for sentence in found.not_found if sentence not in printed]
    _print_part("what is left out", left_out + [f"not used: {sentence}" for sentence in found.not_used])


def _print_part(title: str, lines: Sequence[str]) -> None:
    if lines:
        say(f"\n{title}")
    for line in lines:
        say(f"  {line}")


def save_choices(environment: str, choices: Sequence[Choice], path: Path) -> None:
    """Write the options that were found as a recipe, each with its evidence. Raises FileError."""
    title = f"Inferred from random and probing steps of {environment}."
    options = {choice.option: choice.value for choice in choices}
    write_recipe(path, title, {"automatic": True}, options, {choice.option: choice.reason for choice in choices})
