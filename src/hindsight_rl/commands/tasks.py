"""Commands about a task: `check`, `new` and `infer`; and where commands find the module of an environment."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from ..envs.check import check_goal_env
from ..errors import InputError, OptionError, RunFolderError
from ..options import Choice
from ..recipes import choose_recipe
from ..recipes.files import require_toml, write_recipe
from ..training.run_state import Counts
from .terminal import say, say_command

_TEMPLATES = resources.files(__package__) / "templates"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


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
        text = (_TEMPLATES / template).read_text(encoding="utf-8")
        path.write_text(text.replace("my_task", name).replace("MyTask", _class_name(name)), encoding="utf-8")
    return paths


def infer(arguments: Namespace) -> None:
    """Find the structure of a task in its steps, print it with its evidence, and write it as a recipe."""
    env, output = arguments.env, arguments.output
    if output is not None:
        require_toml(output)  # now, not after the steps
    find_modules_here(env)
    choices, missing, counts = _infer_task(env, arguments.steps, arguments.seed)
    say(f"played {counts.env_steps + counts.check_steps:,} environment steps, {counts.check_steps:,} of them by the check")
    for choice in choices:
        say(f"{choice.option}: {choice.value}\n    {choice.reason}")
    for sentence in missing:
        say(f"not found: {sentence}")
    if output is not None:
        save_choices(env, choices, output)
        say(f"recipe: {output}")
        say_command(f"train {env} --recipe {output}")


def _infer_task(environment: str, steps: int, seed: int) -> tuple[list[Choice], Sequence[str], Counts]:
    """Play the warm-up of a run, with `steps` random steps at least, and return what it shows, what not, and the counts.

    Raises what making and playing the environment raises, and InputError for a task without flat observations.
    """
    from ..her import HER
    from ..training.resolve import latest

    with HER(environment, recipe="default", structure="inferred", seed=seed, random_steps=steps) as model:
        trainer = model.trainer
        if trainer.search is None:
            raise InputError("Structure is inferred from flat arrays of floats: observations, goals and actions.")
        while trainer.search.is_warm_up:
            trainer.learn_from_next_job()
        choices = latest(trainer.search.state.found.structure)
        return list(choices.values()), trainer.not_found, trainer.counts


def save_choices(environment: str, choices: list[Choice], path: Path) -> None:
    """Write the options that were found as a recipe, each with its evidence. Raises FileError."""
    title = f"Inferred from random and probing steps of {environment}."
    options = {choice.option: choice.value for choice in choices}
    write_recipe(path, title, {"automatic": True}, options, {choice.option: choice.reason for choice in choices})


def _class_name(name: str) -> str:
    """Return MyTask for my_task."""
    return "".join(part.capitalize() for part in name.split("_"))
