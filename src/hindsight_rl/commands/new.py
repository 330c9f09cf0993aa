"""`hindsight-rl new`: write a small goal environment with its test, to start from."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from importlib import resources
from pathlib import Path

from ..errors import OptionError, RunFolderError

_TEMPLATES = resources.files(__package__) / "templates"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


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
        path.write_text(text.replace("my_task", name).replace("MyTask", class_name(name)), encoding="utf-8")
    return paths


def class_name(name: str) -> str:
    """Return MyTask for my_task."""
    return "".join(part.capitalize() for part in name.split("_"))
