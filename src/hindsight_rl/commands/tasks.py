"""Commands about a task: `check` and `new`; and where commands find the module of an environment."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from argparse import Namespace
from importlib import resources
from pathlib import Path

from ..envs.check import check_goal_env
from ..errors import OptionError, RunFolderError
from ..recipes import choose_recipe
from .terminal import say

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


def _class_name(name: str) -> str:
    """Return MyTask for my_task."""
    return "".join(part.capitalize() for part in name.split("_"))
